//! Plans with what a solver needs of them.

use super::Plan;
use super::draws::DRAWS_OF_PREDICTIONS;
use super::root::{Conditioning, LANES};
use crate::error::{Error, Result};
use crate::linalg::Pattern;
use std::sync::Arc;

/// Most numbers of a factor: 4 GiB, and as many of its inverse.
const MOST_NUMBERS: usize = 1 << 29;
/// Most multiplications of a factor unless one is asked for: draws of as many rows in space take less time from about there.
pub const MOST_WORK: f64 = 3e9;
/// Numbers of an entry of V: itself, Q, a factor, and its place in a row and in a column.
const NUMBERS: usize = 5;
/// How many times more than it may take a factor is estimated to take where none is looked for.
const CLEARLY: f64 = 10.0;

/// Estimates the multiplications of a sparse factor of rows with [`crate::methods`]' usual neighbours at places that fill so many
/// dimensions, as a test counts them: of a thousand rows, and the power of the rows that they grow with.
pub fn work_of_factor(rows: usize, dims: usize) -> f64 {
    let (thousand, power) = if dims <= 2 { (2.2e7, 2.0) } else { (1e8, 2.4) };
    thousand * (rows as f64 / 1000.0).powf(power)
}

/// What a solver may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Numbers for a function.
    pub(super) numbers: usize,
    /// Multiplications of a factor, where none is asked for.
    pub(super) work: f64,
}

/// How systems of the precision of rows are solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solver {
    /// By a sparse factor where it costs little, else by conjugate gradients.
    #[default]
    Auto,
    /// By a sparse factor, exactly.
    Cholesky,
    /// By conjugate gradients and draws.
    Iterative,
}

/// A plan, and where the precision of its rows is not zero. Rows are in the order of the plan there.
#[derive(Debug)]
pub struct Coupled {
    pub(super) plan: Arc<Plan>,
    pub(super) prepared: Prepared,
    /// The place of every row in the order.
    ranks: Vec<u32>,
}

/// What a solver needs of a plan.
#[derive(Clone, Debug)]
pub(super) enum Prepared {
    Cholesky(Arc<Pattern>),
    Iterative(Arc<Conditioning>),
}

/// Returns the pattern of the precision of a plan whose rows have these ranks.
fn pattern(plan: &Plan, ranks: &[u32]) -> Result<Pattern> {
    let members = |block: usize| plan.block(block).rows.iter().map(|row| ranks[*row as usize]);
    let cliques: Vec<Vec<u32>> = (0..plan.blocks()).map(|own| members(own).collect()).collect();
    Pattern::of_cliques(plan.rows(), cliques.iter().map(|own| &own[..]))
}

impl Coupled {
    /// Prepares a solver for a plan and each of so many functions.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what does not fit in memory.
    pub fn new(plan: Arc<Plan>, functions: usize, solver: Solver) -> Result<Self> {
        let numbers = MOST_NUMBERS / functions.max(1);
        Self::within(plan, solver, Limits { numbers, work: MOST_WORK })
    }

    /// Creates the same within limits.
    pub(super) fn within(plan: Arc<Plan>, solver: Solver, most: Limits) -> Result<Self> {
        let mut ranks = vec![0; plan.rows()];
        plan.order().iter().enumerate().for_each(|(rank, row)| ranks[*row as usize] = rank as u32);
        // an order of the factor is not looked for where it would be far too large
        let dims = plan.metric().dims();
        let hopeless = dims > 1 && work_of_factor(plan.rows(), dims) > CLEARLY * most.work;
        let (what, numbers) = match solver {
            Solver::Iterative => (String::new(), 0),
            Solver::Auto if hopeless => (String::new(), 0),
            _ => {
                let own = pattern(&plan, &ranks)?;
                let numbers = own.factor_entries();
                let costly = solver == Solver::Auto && own.work() > most.work;
                if !costly && numbers <= most.numbers {
                    let prepared = Prepared::Cholesky(Arc::new(own));
                    return Ok(Self { plan, prepared, ranks });
                }
                ("a factor of ".to_string(), numbers)
            }
        };
        let (what, numbers) = match solver {
            Solver::Cholesky => (what, numbers),
            _ => {
                let own = Conditioning::new(&plan, &ranks)?;
                let solving = 6 * LANES * rayon::current_num_threads();
                let numbers =
                    NUMBERS * own.entries() + (DRAWS_OF_PREDICTIONS + solving) * own.rows();
                if numbers <= most.numbers {
                    let prepared = Prepared::Iterative(Arc::new(own));
                    return Ok(Self { plan, prepared, ranks });
                }
                ("draws of ".to_string(), numbers)
            }
        };
        Err(Error::Invalid(format!(
            "the neighbours of {} rows need {what}{:.1} GiB for each latent function; use fewer of them, as in \
             `vecchia(neighbours={})`, or a sparse method such as `svgp`",
            plan.rows(),
            numbers as f64 * 8.0 / (1u64 << 30) as f64,
            (plan.neighbours() / 2).max(1),
        )))
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns whether systems are solved by conjugate gradients.
    pub fn is_iterative(&self) -> bool {
        matches!(self.prepared, Prepared::Iterative(_))
    }

    /// Estimates the multiplications of a factorisation; none where systems are solved by conjugate gradients.
    pub fn work(&self) -> Option<f64> {
        match &self.prepared {
            Prepared::Cholesky(own) => Some(own.work()),
            Prepared::Iterative(_) => None,
        }
    }

    pub(super) fn rank(&self, row: u32) -> u32 {
        self.ranks[row as usize]
    }

    pub(super) fn rows(&self) -> usize {
        self.ranks.len()
    }

    pub(super) fn ranked(&self, rows: &[u32]) -> Vec<u32> {
        rows.iter().map(|row| self.ranks[*row as usize]).collect()
    }

    /// Returns the numbers of rows in the order of the plan.
    pub(super) fn in_order(&self, values: &[f64]) -> Vec<f64> {
        self.plan.order().iter().map(|row| values[*row as usize]).collect()
    }

    /// Returns numbers in the order of the plan, row by row.
    pub(super) fn by_row(&self, values: &[f64]) -> Vec<f64> {
        self.ranks.iter().map(|rank| values[*rank as usize]).collect()
    }
}
