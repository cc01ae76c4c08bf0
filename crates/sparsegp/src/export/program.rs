//! Predictions as steps that any language has: sums over the lines of tables, and formulas of these sums.

use super::graph::{Graph, Id, Op};
use crate::linalg::{Mat, MatRef, invert_lower, par_for, solve_lower_transpose};
use std::collections::{HashMap, HashSet};

/// A lower-triangular matrix, row after row.
#[derive(Clone, Debug)]
pub(super) struct Lower {
    pub(super) size: usize,
    pub(super) values: Vec<f64>,
}

/// What is summed of the values v that the lines of a table have.
#[derive(Clone, Debug)]
pub(super) enum Sum {
    /// Σ wⱼvⱼ.
    Weighted(Vec<f64>),
    /// ‖Gv‖².
    Product(Lower),
    /// ‖L⁻¹v‖².
    Solution(Lower),
    /// The same by the inverse: φ = L⁻¹v and then, with L, what is left of it, φ + L⁻¹(v − Lφ).
    Refined(Lower, Lower),
    /// ‖Av‖², A (r×M) row after row.
    Image(usize, Vec<f64>),
}

/// A table, a value at each of its lines, and sums of these values, each with its place among the scalars.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Column by column.
    pub(super) table: Vec<Vec<f64>>,
    pub(super) lines: usize,
    pub(super) body: Id,
    pub(super) sums: Vec<(usize, Sum)>,
}

/// Numbers that are given for every row.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Its name, such as `mean`.
    pub(super) name: &'static str,
    pub(super) values: Vec<Id>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) graph: Graph,
    pub(super) blocks: Vec<Block>,
    pub(super) scalars: usize,
    pub(super) outputs: Vec<Output>,
}

impl Lower {
    /// Takes the lower triangle of a matrix, or of its transpose.
    pub(super) fn of(matrix: MatRef<f64>, transposed: bool) -> Self {
        let size = matrix.nrows();
        let at = |i: usize, j: usize| if transposed { matrix[(j, i)] } else { matrix[(i, j)] };
        let values = (0..size).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| at(i, j));
        Self { size, values: values.collect() }
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        let start = i * (i + 1) / 2;
        &self.values[start..=start + i]
    }

    /// Returns the inverse.
    pub(super) fn inverse(&self) -> Self {
        let l =
            Mat::from_fn(self.size, self.size, |i, j| if j <= i { self.row(i)[j] } else { 0.0 });
        let mut inverse = Mat::zeros(self.size, self.size);
        invert_lower(inverse.as_mut(), l.as_ref(), par_for(self.size));
        Self::of(inverse.as_ref(), false)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Sum {
    fn of(&self, v: &[f64]) -> f64 {
        match self {
            Self::Weighted(weights) => dot(weights, v),
            Self::Product(g) => (0..g.size).map(|i| dot(g.row(i), v).powi(2)).sum(),
            Self::Solution(l) => {
                let mut phi: Vec<f64> = Vec::with_capacity(l.size);
                for i in 0..l.size {
                    let row = l.row(i);
                    phi.push((v[i] - dot(row, &phi)) / row[i]);
                }
                dot(&phi, &phi)
            }
            Self::Refined(l, inverse) => {
                let times = |own: &Lower, v: &[f64]| -> Vec<f64> {
                    (0..own.size).map(|i| dot(own.row(i), v)).collect()
                };
                let phi = times(inverse, v);
                let back = times(l, &phi);
                let left: Vec<f64> = v.iter().zip(&back).map(|(v, own)| v - own).collect();
                let more = times(inverse, &left);
                phi.iter().zip(&more).map(|(phi, more)| (phi + more).powi(2)).sum()
            }
            Self::Image(rows, a) => {
                (0..*rows).map(|i| dot(&a[i * v.len()..(i + 1) * v.len()], v).powi(2)).sum()
            }
        }
    }

    fn numbers(&self) -> usize {
        match self {
            Self::Weighted(all) | Self::Image(_, all) => all.len(),
            Self::Product(own) | Self::Solution(own) => own.values.len(),
            Self::Refined(l, inverse) => l.values.len() + inverse.values.len(),
        }
    }
}

impl Program {
    /// Adds a table with a value at its lines, and returns the sums that are asked for.
    pub(super) fn block(&mut self, columns: &[Vec<f64>], body: Id, sums: Vec<Sum>) -> Vec<Id> {
        let lines = columns.first().map_or(0, Vec::len);
        let (body, table) = self.graph.tabulated(body, columns);
        let first = self.scalars;
        self.scalars += sums.len();
        let sums = (first..).zip(sums).collect();
        self.blocks.push(Block { table, lines, body, sums });
        (first..self.scalars).map(|at| self.graph.scalar(at)).collect()
    }

    /// Returns how many numbers there are in its tables.
    pub(super) fn numbers(&self) -> usize {
        let of = |block: &Block| {
            block.table.iter().map(Vec::len).sum::<usize>()
                + block.sums.iter().map(|(_, sum)| sum.numbers()).sum::<usize>()
        };
        self.blocks.iter().map(of).sum()
    }

    /// Replaces solutions of triangular systems by products with the inverses, refined or not, for languages without systems.
    pub(super) fn without_solutions(&mut self, refined: bool) {
        for (_, sum) in self.blocks.iter_mut().flat_map(|block| &mut block.sums) {
            if let Sum::Solution(l) = sum {
                let inverse = l.inverse();
                *sum = match refined {
                    true => Sum::Refined(l.clone(), inverse),
                    false => Sum::Product(inverse),
                };
            }
        }
    }

    /// Returns which sums values need.
    pub(super) fn sums_of(&self, values: &[Id]) -> HashSet<usize> {
        let (mut needed, mut open) = (HashSet::new(), values.to_vec());
        while let Some(id) = open.pop() {
            for own in self.graph.order(&[id]) {
                let Op::Scalar(s) = self.graph.op(own) else { continue };
                if needed.insert(s) {
                    let of = |block: &&Block| block.sums.iter().any(|(at, _)| *at == s);
                    open.extend(self.blocks.iter().find(of).map(|block| block.body));
                }
            }
        }
        needed
    }

    /// Leaves out what no output needs.
    pub(super) fn prune(&mut self) {
        let ends: Vec<Id> = self.outputs.iter().flat_map(|own| own.values.clone()).collect();
        let needed = self.sums_of(&ends);
        self.blocks.iter_mut().for_each(|block| block.sums.retain(|(at, _)| needed.contains(at)));
        self.blocks.retain(|block| !block.sums.is_empty());
    }

    /// Returns the outputs at a row.
    pub(super) fn at(&self, row: &[f64]) -> Vec<Vec<f64>> {
        let mut scalars = vec![f64::NAN; self.scalars];
        for block in &self.blocks {
            let order = self.graph.order(&[block.body]);
            let (of_lines, of_row): (Vec<Id>, Vec<Id>) =
                order.into_iter().partition(|id| self.graph.depends(*id).line);
            let mut values = Values::default();
            of_row
                .iter()
                .for_each(|id| values.set(*id, self.value(*id, row, &scalars, &values, None)));
            let line = |j: usize, values: &mut Values| {
                for id in &of_lines {
                    let own = self.value(*id, row, &scalars, values, Some((block, j)));
                    values.set(*id, own);
                }
                values.get(block.body)
            };
            let all: Vec<f64> = (0..block.lines).map(|j| line(j, &mut values)).collect();
            for (at, sum) in &block.sums {
                scalars[*at] = sum.of(&all);
            }
        }
        let ends: Vec<Id> = self.outputs.iter().flat_map(|own| own.values.clone()).collect();
        let mut values = Values::default();
        for id in self.graph.order(&ends) {
            values.set(id, self.value(id, row, &scalars, &values, None));
        }
        let of = |own: &Output| own.values.iter().map(|id| values.get(*id)).collect();
        self.outputs.iter().map(of).collect()
    }

    fn value(
        &self,
        id: Id,
        row: &[f64],
        scalars: &[f64],
        values: &Values,
        line: Option<(&Block, usize)>,
    ) -> f64 {
        match self.graph.op(id) {
            Op::Constant(bits) => f64::from_bits(bits),
            Op::Input(d) => row[d],
            Op::Scalar(at) => scalars[at],
            Op::Column(c) => line.map_or(f64::NAN, |(block, j)| block.table[c][j]),
            Op::Unary(f, a) => f.of(values.get(a)),
            Op::Binary(f, a, b) => f.of(values.get(a), values.get(b)),
        }
    }

    /// Returns the output of a name, if there is one.
    pub(super) fn output(&self, name: &str) -> Option<&Output> {
        self.outputs.iter().find(|own| own.name == name)
    }
}

/// Values by their places.
#[derive(Default)]
struct Values(HashMap<Id, f64>);

impl Values {
    fn set(&mut self, id: Id, value: f64) {
        self.0.insert(id, value);
    }

    fn get(&self, id: Id) -> f64 {
        self.0.get(&id).copied().unwrap_or(f64::NAN)
    }
}

/// Returns the columns of points, one for each input.
pub(super) fn columns_of(points: MatRef<f64>) -> Vec<Vec<f64>> {
    (0..points.ncols()).map(|d| (0..points.nrows()).map(|j| points[(j, d)]).collect()).collect()
}

/// Returns A = RᵀL⁻¹ (r×M) of a root R (M×r), row after row.
pub(super) fn image(l: MatRef<f64>, root: MatRef<f64>) -> (usize, Vec<f64>) {
    let mut a = root.to_owned();
    solve_lower_transpose(l, a.as_mut(), par_for(l.nrows()));
    let rows = a.ncols();
    (rows, (0..rows).flat_map(|i| (0..a.nrows()).map(move |j| (j, i))).map(|at| a[at]).collect())
}
