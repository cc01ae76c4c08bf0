//! What the AUC needs of every row.

/// Classes, weights and scores of rows. Of two classes the score is only p₁; of C > 2 there are C
/// scores, row after row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranking {
    classes: usize,
    labels: Vec<u32>,
    weights: Vec<f64>,
    scores: Vec<f64>,
}

impl Ranking {
    pub fn new(classes: usize) -> Self {
        Self { classes, labels: Vec::new(), weights: Vec::new(), scores: Vec::new() }
    }

    pub fn push(&mut self, class: usize, weight: f64, probabilities: &[f64]) {
        self.labels.push(class as u32);
        self.weights.push(weight);
        let scores = if self.classes == 2 { &probabilities[1..] } else { probabilities };
        self.scores.extend_from_slice(scores);
    }

    pub fn merge(&mut self, other: &Self) {
        self.labels.extend_from_slice(&other.labels);
        self.weights.extend_from_slice(&other.weights);
        self.scores.extend_from_slice(&other.scores);
    }

    /// Returns the AUC of two classes; of more, the mean over classes that occur of one against the
    /// rest.
    pub fn auc(&self) -> Option<f64> {
        if self.classes == 2 {
            return self.one_against_rest(1, 0);
        }
        let each: Vec<f64> =
            (0..self.classes).filter_map(|c| self.one_against_rest(c, c)).collect();
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    }

    /// Returns the AUC of score column `column` for class `class` against all others: Σ w⁺w⁻ over
    /// pairs of which the positive one has the larger score, half of it for equal scores, over Σw⁺
    /// Σw⁻. `None` if either side has no weight.
    fn one_against_rest(&self, class: usize, column: usize) -> Option<f64> {
        let width = if self.classes == 2 { 1 } else { self.classes };
        let score = |i: usize| self.scores[i * width + column];
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.sort_unstable_by(|a, b| score(*a).total_cmp(&score(*b)));
        let (mut pairs, mut positive, mut negative) = (0.0, 0.0, 0.0);
        for equal in order.chunk_by(|a, b| score(*a) == score(*b)) {
            let (mut above, mut beside) = (0.0, 0.0);
            for i in equal {
                let side = if self.labels[*i] as usize == class { &mut above } else { &mut beside };
                *side += self.weights[*i];
            }
            pairs += above * (negative + 0.5 * beside);
            positive += above;
            negative += beside;
        }
        (positive > 0.0 && negative > 0.0).then(|| pairs / positive / negative)
    }
}
