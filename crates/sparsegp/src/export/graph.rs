//! Formulas of scalars as a graph: every value is written once, whoever uses it.
//!
//! Values are of a row, or of a row and a line of a table ([`Op::Column`]): a covariance with an inducing point, or an
//! integrand at a node. Operands come before what is made of them, so the order of the nodes is one to evaluate them in.

use crate::special;
use std::collections::HashMap;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(usize);

/// How a value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// A number, by its bits.
    Constant(u64),
    /// An input of the row, as the table has it.
    Input(usize),
    /// A sum over the lines of a table, by its place in the program.
    Scalar(usize),
    /// A column of the table that is gone through.
    Column(usize),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
}

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unary {
    Abs,
    Asinh,
    Cos,
    Exp,
    /// eˣ − 1, of x ≥ 0.
    Expm1,
    Log,
    /// Φ.
    NormalCdf,
    Sin,
    Sqrt,
}

/// Functions of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Binary {
    Add,
    Div,
    Max,
    Min,
    Mul,
    Pow,
    Sub,
}

impl Unary {
    pub(super) fn of(self, x: f64) -> f64 {
        match self {
            Self::Abs => x.abs(),
            Self::Asinh => x.asinh(),
            Self::Cos => x.cos(),
            Self::Exp => x.exp(),
            Self::Expm1 => x.exp_m1(),
            Self::Log => x.ln(),
            Self::NormalCdf => special::normal_cdf(x),
            Self::Sin => x.sin(),
            Self::Sqrt => x.sqrt(),
        }
    }
}

impl Binary {
    pub(super) fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Div => a / b,
            // NaN stays
            Self::Max => {
                if a < b {
                    b
                } else {
                    a
                }
            }
            Self::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Self::Mul => a * b,
            Self::Pow => a.powf(b),
            Self::Sub => a - b,
        }
    }
}

/// What a value depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depends {
    /// The row.
    pub(super) row: bool,
    /// The line of a table.
    pub(super) line: bool,
}

/// All values.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<(Op, Depends)>,
    known: HashMap<Op, Id>,
}

impl Graph {
    fn node(&mut self, op: Op) -> Id {
        if let Some(id) = self.known.get(&op) {
            return *id;
        }
        let depends = match op {
            Op::Constant(_) => Depends::default(),
            Op::Input(_) | Op::Scalar(_) => Depends { row: true, line: false },
            Op::Column(_) => Depends { row: false, line: true },
            Op::Unary(_, a) => self.depends(a),
            Op::Binary(_, a, b) => {
                let (a, b) = (self.depends(a), self.depends(b));
                Depends { row: a.row || b.row, line: a.line || b.line }
            }
        };
        self.nodes.push((op, depends));
        let id = Id(self.nodes.len() - 1);
        self.known.insert(op, id);
        id
    }

    pub(super) fn op(&self, id: Id) -> Op {
        self.nodes[id.0].0
    }

    pub(super) fn depends(&self, id: Id) -> Depends {
        self.nodes[id.0].1
    }

    /// Returns the number, where it is one.
    pub(super) fn number(&self, id: Id) -> Option<f64> {
        match self.op(id) {
            Op::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    pub(super) fn constant(&mut self, value: f64) -> Id {
        self.node(Op::Constant(value.to_bits()))
    }

    pub(super) fn input(&mut self, of: usize) -> Id {
        self.node(Op::Input(of))
    }

    pub(super) fn scalar(&mut self, of: usize) -> Id {
        self.node(Op::Scalar(of))
    }

    pub(super) fn column(&mut self, of: usize) -> Id {
        self.node(Op::Column(of))
    }

    pub(super) fn unary(&mut self, f: Unary, a: Id) -> Id {
        match self.number(a) {
            Some(a) => self.constant(f.of(a)),
            None => self.node(Op::Unary(f, a)),
        }
    }

    pub(super) fn binary(&mut self, f: Binary, a: Id, b: Id) -> Id {
        match (f, self.number(a), self.number(b)) {
            (_, Some(a), Some(b)) => self.constant(f.of(a, b)),
            (Binary::Add, Some(0.0), _) | (Binary::Mul, Some(1.0), _) => b,
            (Binary::Add | Binary::Sub, _, Some(0.0))
            | (Binary::Mul | Binary::Div, _, Some(1.0)) => a,
            (Binary::Sub, ..) if a == b => self.constant(0.0),
            (Binary::Mul, Some(0.0), _) | (Binary::Mul, _, Some(0.0)) => self.constant(0.0),
            (Binary::Max | Binary::Min, ..) if a == b => a,
            _ => self.node(Op::Binary(f, a, b)),
        }
    }

    pub(super) fn add(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Add, a, b)
    }

    pub(super) fn sub(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Sub, a, b)
    }

    pub(super) fn mul(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Mul, a, b)
    }

    pub(super) fn div(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Div, a, b)
    }

    pub(super) fn max(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Max, a, b)
    }

    /// Returns a times a number.
    pub(super) fn times(&mut self, a: Id, by: f64) -> Id {
        let by = self.constant(by);
        self.mul(a, by)
    }

    /// Returns a plus a number.
    pub(super) fn plus(&mut self, a: Id, by: f64) -> Id {
        let by = self.constant(by);
        self.add(a, by)
    }

    pub(super) fn square(&mut self, a: Id) -> Id {
        self.mul(a, a)
    }

    pub(super) fn exp(&mut self, a: Id) -> Id {
        self.unary(Unary::Exp, a)
    }

    pub(super) fn sqrt(&mut self, a: Id) -> Id {
        self.unary(Unary::Sqrt, a)
    }

    pub(super) fn sum(&mut self, all: impl IntoIterator<Item = Id>) -> Id {
        let mut sum = self.constant(0.0);
        for own in all {
            sum = self.add(sum, own);
        }
        sum
    }

    /// Returns 1/(1 + e⁻ˣ).
    pub(super) fn sigmoid(&mut self, x: Id) -> Id {
        let minus = self.times(x, -1.0);
        let e = self.exp(minus);
        let below = self.plus(e, 1.0);
        let one = self.constant(1.0);
        self.div(one, below)
    }

    /// Returns 1 where two numbers are equal, else 0; for numbers that are farther apart than
    /// 10⁻³⁰⁰.
    pub(super) fn equal(&mut self, a: Id, b: Id) -> Id {
        let apart = self.sub(a, b);
        let apart = self.unary(Unary::Abs, apart);
        let (many, one) = (self.times(apart, 1e300), self.constant(1.0));
        let least = self.binary(Binary::Min, many, one);
        self.sub(one, least)
    }

    /// Returns the operands of a value.
    pub(super) fn operands(&self, id: Id) -> impl Iterator<Item = Id> + use<> {
        let [a, b] = match self.op(id) {
            Op::Unary(_, a) => [Some(a), None],
            Op::Binary(_, a, b) => [Some(a), Some(b)],
            _ => [None, None],
        };
        a.into_iter().chain(b)
    }

    /// Returns all that values are made of, with themselves, in an order to evaluate it in.
    pub(super) fn order(&self, of: &[Id]) -> Vec<Id> {
        let Some(last) = of.iter().max() else { return Vec::new() };
        let mut needed = vec![false; last.0 + 1];
        of.iter().for_each(|id| needed[id.0] = true);
        for at in (0..needed.len()).rev().filter(|at| self.nodes[*at].1 != Depends::default()) {
            if needed[at] {
                self.operands(Id(at)).for_each(|id| needed[id.0] = true);
            }
        }
        needed.iter().enumerate().filter(|(_, needed)| **needed).map(|(at, _)| Id(at)).collect()
    }

    /// Returns a value of a line, as one that has everything that depends on the line only in
    /// columns of a new table. `columns` are those that there are.
    pub(super) fn tabulated(&mut self, body: Id, columns: &[Vec<f64>]) -> (Id, Vec<Vec<f64>>) {
        let lines = columns.first().map_or(0, Vec::len);
        let (mut new, mut own) = (HashMap::new(), Vec::new());
        let mut values: HashMap<Id, Vec<f64>> = HashMap::new();
        for id in self.order(&[body]) {
            let depends = self.depends(id);
            if !depends.line {
                new.insert(id, id);
                continue;
            }
            let of = |id: &Id, values: &HashMap<Id, Vec<f64>>, graph: &Self, i: usize| {
                values.get(id).map_or_else(|| graph.number(*id).unwrap_or(f64::NAN), |all| all[i])
            };
            if !depends.row {
                let line = |i: usize| match self.op(id) {
                    Op::Column(c) => columns[c][i],
                    Op::Unary(f, a) => f.of(of(&a, &values, self, i)),
                    Op::Binary(f, a, b) => f.of(of(&a, &values, self, i), of(&b, &values, self, i)),
                    _ => f64::NAN,
                };
                let all = (0..lines).map(line).collect();
                values.insert(id, all);
                continue;
            }
            let operands: Vec<Id> = self.operands(id).collect();
            for a in operands {
                if self.is_of_line(a) && !new.contains_key(&a) {
                    let column = self.column(own.len());
                    own.push(values[&a].clone());
                    new.insert(a, column);
                }
            }
            let moved = match self.op(id) {
                Op::Unary(f, a) => self.unary(f, new[&a]),
                Op::Binary(f, a, b) => self.binary(f, new[&a], new[&b]),
                _ => id,
            };
            new.insert(id, moved);
        }
        match values.remove(&body) {
            Some(all) => (self.column(0), vec![all]),
            None => (new[&body], own),
        }
    }

    fn is_of_line(&self, id: Id) -> bool {
        self.depends(id) == Depends { row: false, line: true }
    }
}
