//! A model of ONNX (operators of version 17, 64-bit floats) with the prediction of a model.
//!
//! Values of rows are N×1, those of rows and lines of a table N×M, columns of tables 1×M: operators broadcast. ONNX has no
//! triangular systems, so covariances are multiplied by inverses of factors ([`super::program::Program::without_solutions`]). Its
//! runtime has neither Φ nor sinh of 64 bits: they are made of what it has.

use super::graph::{Binary, Id, Op, Unary};
use super::program::{Block, Lower, Program, Sum};
use super::protobuf::Message;
use crate::special::{HALF_LOG_TAU, log_mills};
use std::collections::HashMap;
use std::f64::consts::PI;

/// Version of the operators, and of the format that they came with.
const OPERATORS: u64 = 17;
const FORMAT: u64 = 8;
/// Types of elements, by their numbers in ONNX.
const DOUBLE: u64 = 11;
const INT64: u64 = 7;
/// Terms of the series of Φ.
const TERMS: usize = 32;

/// What is written beside the formula.
pub(super) struct About {
    pub(super) version: &'static str,
    pub(super) description: String,
    /// Names of the inputs, and by the name of an output those of its columns.
    pub(super) inputs: String,
    pub(super) outputs: Vec<(String, String)>,
    /// Number of inputs.
    pub(super) width: usize,
    /// Names and values of metadata.
    pub(super) metadata: Vec<(&'static str, String)>,
}

/// A graph of operators that is written.
struct Writer<'a> {
    program: &'a Program,
    nodes: Vec<Message>,
    tensors: Vec<Message>,
    /// Numbers that have a name, by their bits.
    numbers: HashMap<u64, String>,
    /// Values of rows that have one.
    of_row: HashMap<Id, String>,
    /// Names of the sums over lines.
    scalars: Vec<String>,
    next: usize,
}

fn tensor(name: &str, dims: &[usize], element: u64, raw: &[u8]) -> Message {
    let mut tensor = Message::default();
    for dim in dims {
        tensor.number(1, *dim as u64);
    }
    tensor.number(2, element).text(8, name).bytes(9, raw);
    tensor
}

fn raw(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

/// Returns coefficients c of log{(1 − Φ(t)) e^{t²/2} (1 + t/2)} = c₀ + Σ cₖTₖ(u) with u = 2/(1 +
/// t/2) − 1, for t ≥ 0: a smooth function of u on [−1, 1], interpolated at Chebyshev's points.
fn tail_series() -> Vec<f64> {
    let angle = |k: usize| PI * (k as f64 + 0.5) / TERMS as f64;
    let value = |k: usize| {
        let s = 0.5 * (1.0 + angle(k).cos());
        let t = 2.0 / s - 2.0;
        log_mills(t) - HALF_LOG_TAU - s.ln()
    };
    let values: Vec<f64> = (0..TERMS).map(value).collect();
    let of = |j: usize| {
        let parts = values.iter().enumerate().map(|(k, v)| v * (j as f64 * angle(k)).cos());
        parts.sum::<f64>() * if j == 0 { 1.0 } else { 2.0 } / TERMS as f64
    };
    (0..TERMS).map(of).collect()
}

impl<'a> Writer<'a> {
    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn node(&mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[Message]) {
        let mut node = Message::default();
        inputs.iter().for_each(|input| {
            node.text(1, input);
        });
        node.text(2, output).text(4, operator);
        attributes.iter().for_each(|attribute| {
            node.message(5, attribute);
        });
        self.nodes.push(node);
    }

    /// Adds an operator, and returns the name of what it gives.
    fn apply(&mut self, operator: &str, inputs: &[&str]) -> String {
        let output = self.fresh();
        self.node(operator, inputs, &output, &[]);
        output
    }

    fn number(&mut self, value: f64) -> String {
        if let Some(name) = self.numbers.get(&value.to_bits()) {
            return name.clone();
        }
        let name = self.fresh();
        self.tensors.push(tensor(&name, &[], DOUBLE, &raw(std::iter::once(value))));
        self.numbers.insert(value.to_bits(), name.clone());
        name
    }

    fn matrix(&mut self, dims: [usize; 2], values: impl Iterator<Item = f64>) -> String {
        let name = self.fresh();
        self.tensors.push(tensor(&name, &dims, DOUBLE, &raw(values)));
        name
    }

    /// Does so with a number on the right.
    fn with(&mut self, operator: &str, a: &str, number: f64) -> String {
        let number = self.number(number);
        self.apply(operator, &[a, &number])
    }

    /// Adds an input of the rows, N×1.
    fn input(&mut self, d: usize) -> String {
        let (index, output) = (self.fresh(), self.fresh());
        self.tensors.push(tensor(&index, &[1], INT64, &(d as i64).to_le_bytes()));
        let axis = whole("axis", 1);
        self.node("Gather", &["x", &index], &output, &[axis]);
        output
    }

    fn unary(&mut self, f: Unary, a: &str) -> String {
        let operator = match f {
            Unary::Abs => "Abs",
            Unary::Cos => "Cos",
            Unary::Exp => "Exp",
            Unary::Log => "Log",
            Unary::Sin => "Sin",
            Unary::Sqrt => "Sqrt",
            Unary::Asinh => return self.asinh(a),
            Unary::Expm1 => return self.expm1(a),
            Unary::NormalCdf => return self.normal_cdf(a),
        };
        self.apply(operator, &[a])
    }

    /// Returns sign(x) log(|x| + √(x² + 1)).
    fn asinh(&mut self, a: &str) -> String {
        let (sign, size) = (self.apply("Sign", &[a]), self.apply("Abs", &[a]));
        let square = self.apply("Mul", &[a, a]);
        let more = self.with("Add", &square, 1.0);
        let root = self.apply("Sqrt", &[&more]);
        let sum = self.apply("Add", &[&size, &root]);
        let log = self.apply("Log", &[&sum]);
        self.apply("Mul", &[&sign, &log])
    }

    /// Returns tanh(x/2)(eˣ + 1), which keeps the digits of small x.
    fn expm1(&mut self, a: &str) -> String {
        let half = self.with("Mul", a, 0.5);
        let (tanh, e) = (self.apply("Tanh", &[&half]), self.apply("Exp", &[a]));
        let more = self.with("Add", &e, 1.0);
        self.apply("Mul", &[&tanh, &more])
    }

    /// Returns Φ by the series of its tail, [`tail_series`].
    fn normal_cdf(&mut self, z: &str) -> String {
        let (sign, size) = (self.apply("Sign", &[z]), self.apply("Abs", &[z]));
        let half = self.with("Mul", &size, 0.5);
        let below = self.with("Add", &half, 1.0);
        let one = self.number(1.0);
        let s = self.apply("Div", &[&one, &below]);
        let twice = self.with("Mul", &s, 2.0);
        let u = self.with("Sub", &twice, 1.0);
        let two_u = self.with("Mul", &u, 2.0);
        let series = tail_series();
        // Clenshaw
        let (mut last, mut before) = (self.number(series[TERMS - 1]), self.number(0.0));
        for c in series[1..TERMS - 1].iter().rev() {
            let product = self.apply("Mul", &[&two_u, &last]);
            let rest = self.apply("Sub", &[&product, &before]);
            before = std::mem::replace(&mut last, self.with("Add", &rest, *c));
        }
        let product = self.apply("Mul", &[&u, &last]);
        let rest = self.apply("Sub", &[&product, &before]);
        let log = self.with("Add", &rest, series[0]);
        let square = self.apply("Mul", &[z, z]);
        let half = self.with("Mul", &square, 0.5);
        let power = self.apply("Sub", &[&log, &half]);
        let e = self.apply("Exp", &[&power]);
        let tail = self.apply("Mul", &[&e, &s]);
        // H + (1 − 2H)·tail = ½(1 + sign) − sign·tail, and ½ at 0
        let more = self.with("Add", &sign, 1.0);
        let half = self.with("Mul", &more, 0.5);
        let signed = self.apply("Mul", &[&sign, &tail]);
        self.apply("Sub", &[&half, &signed])
    }

    /// Writes values in their order, with the columns of a table if they are of one.
    fn values(&mut self, of: &[Id], columns: &[String]) -> HashMap<Id, String> {
        let mut of_line: HashMap<Id, String> = HashMap::new();
        for id in self.program.graph.order(of) {
            let line = self.program.graph.depends(id).line;
            if !line && self.of_row.contains_key(&id) {
                continue;
            }
            let name = |id: &Id, writer: &Self| -> String {
                writer.of_row.get(id).or_else(|| of_line.get(id)).cloned().unwrap_or_default()
            };
            let own = match self.program.graph.op(id) {
                Op::Constant(bits) => self.number(f64::from_bits(bits)),
                Op::Input(d) => self.input(d),
                Op::Scalar(at) => self.scalars[at].clone(),
                Op::Column(c) => columns[c].clone(),
                Op::Unary(f, a) => {
                    let a = name(&a, self);
                    self.unary(f, &a)
                }
                Op::Binary(f, a, b) => {
                    let operator = match f {
                        Binary::Add => "Add",
                        Binary::Div => "Div",
                        Binary::Max => "Max",
                        Binary::Min => "Min",
                        Binary::Mul => "Mul",
                        Binary::Pow => "Pow",
                        Binary::Sub => "Sub",
                    };
                    let (a, b) = (name(&a, self), name(&b, self));
                    self.apply(operator, &[&a, &b])
                }
            };
            if line {
                of_line.insert(id, own)
            } else {
                self.of_row.insert(id, own)
            };
        }
        of_line
    }

    fn name(&self, id: Id, of_line: &HashMap<Id, String>) -> String {
        self.of_row.get(&id).or_else(|| of_line.get(&id)).cloned().unwrap_or_default()
    }

    /// Returns the squared lengths of rows.
    fn squares(&mut self, rows: &str) -> String {
        let output = self.fresh();
        let mut axes = Message::default();
        axes.text(1, "axes").number(8, 1).number(20, 7);
        let attributes = [axes, whole("keepdims", 1)];
        self.node("ReduceSumSquare", &[rows], &output, &attributes);
        output
    }

    fn block(&mut self, block: &Block) {
        let lines = block.lines;
        let columns: Vec<String> = block
            .table
            .iter()
            .map(|column| self.matrix([1, lines], column.iter().copied()))
            .collect();
        let of_line = self.values(&[block.body], &columns);
        let mut values = self.name(block.body, &of_line);
        if !self.program.graph.depends(block.body).line {
            // the same at every line
            let zeros = self.matrix([1, lines], std::iter::repeat_n(0.0, lines));
            values = self.apply("Add", &[&values, &zeros]);
        }
        for (at, sum) in &block.sums {
            let own = match sum {
                Sum::Weighted(weights) => {
                    let weights = self.matrix([lines, 1], weights.iter().copied());
                    self.apply("MatMul", &[&values, &weights])
                }
                Sum::Product(own) | Sum::Solution(own) => {
                    let transposed = self.matrix([lines, lines], upper(own));
                    let image = self.apply("MatMul", &[&values, &transposed]);
                    self.squares(&image)
                }
                Sum::Refined(l, inverse) => {
                    let [l, inverse] =
                        [l, inverse].map(|own| self.matrix([lines, lines], upper(own)));
                    let first = self.apply("MatMul", &[&values, &inverse]);
                    let back = self.apply("MatMul", &[&first, &l]);
                    let left = self.apply("Sub", &[&values, &back]);
                    let more = self.apply("MatMul", &[&left, &inverse]);
                    let image = self.apply("Add", &[&first, &more]);
                    self.squares(&image)
                }
                Sum::Image(rows, a) => {
                    let at = |j: usize| (0..*rows).map(move |i| a[i * lines + j]);
                    let transposed = self.matrix([lines, *rows], (0..lines).flat_map(at));
                    let image = self.apply("MatMul", &[&values, &transposed]);
                    self.squares(&image)
                }
            };
            self.scalars[*at] = own;
        }
    }

    /// Adds an output of columns, N×P.
    fn output(&mut self, name: &str, ids: &[Id]) {
        let of_line = self.values(ids, &[]);
        let mut columns = Vec::with_capacity(ids.len());
        for id in ids {
            let mut own = self.name(*id, &of_line);
            if !reaches_input(self.program, *id) {
                // the same for every row
                let x = self.input(0);
                let zero = self.apply("Sub", &[&x, &x]);
                own = self.apply("Add", &[&own, &zero]);
            }
            columns.push(own);
        }
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let axis = whole("axis", 1);
        self.node("Concat", &columns, name, &[axis]);
    }
}

/// Returns an attribute that is a whole number.
fn whole(name: &str, value: u64) -> Message {
    let mut attribute = Message::default();
    attribute.text(1, name).number(3, value).number(20, 2);
    attribute
}

/// Returns the transpose of a lower-triangular matrix, row after row.
fn upper(own: &Lower) -> impl Iterator<Item = f64> + '_ {
    let at = |i: usize, j: usize| if j <= i { own.row(i)[j] } else { 0.0 };
    (0..own.size).flat_map(move |j| (0..own.size).map(move |i| at(i, j)))
}

/// Returns whether a value is not the same for all rows.
fn reaches_input(program: &Program, id: Id) -> bool {
    let of_block = |s: usize| program.blocks.iter().find(|b| b.sums.iter().any(|(at, _)| *at == s));
    program.graph.order(&[id]).into_iter().any(|id| match program.graph.op(id) {
        Op::Input(_) => true,
        Op::Scalar(s) => of_block(s).is_some_and(|block| reaches_input(program, block.body)),
        _ => false,
    })
}

/// Returns a tensor of N rows that goes in or comes out.
fn value_info(name: &str, columns: usize, doc: &str) -> Message {
    let mut rows = Message::default();
    rows.text(2, "N");
    let mut width = Message::default();
    width.number(1, columns as u64);
    let mut shape = Message::default();
    shape.message(1, &rows).message(1, &width);
    let mut tensor = Message::default();
    tensor.number(1, DOUBLE).message(2, &shape);
    let mut of_type = Message::default();
    of_type.message(1, &tensor);
    let mut info = Message::default();
    info.text(1, name).message(2, &of_type).text(3, doc);
    info
}

/// Returns the whole model.
pub(super) fn model(program: &Program, about: &About) -> Vec<u8> {
    let (nodes, tensors) = (Vec::new(), Vec::new());
    let (numbers, of_row) = (HashMap::new(), HashMap::new());
    let mut writer = Writer {
        program,
        nodes,
        tensors,
        numbers,
        of_row,
        scalars: vec![String::new(); program.scalars],
        next: 0,
    };
    for block in &program.blocks {
        writer.block(block);
    }
    for own in &program.outputs {
        writer.output(own.name, &own.values);
    }
    let mut graph = Message::default();
    for node in &writer.nodes {
        graph.message(1, node);
    }
    graph.text(2, "sparsegp");
    for tensor in &writer.tensors {
        graph.message(5, tensor);
    }
    graph.message(11, &value_info("x", about.width, &about.inputs));
    for own in &program.outputs {
        let doc =
            about.outputs.iter().find(|(name, _)| name == own.name).map_or("", |(_, doc)| doc);
        graph.message(12, &value_info(own.name, own.values.len(), doc));
    }
    let mut operators = Message::default();
    operators.text(1, "").number(2, OPERATORS);
    let mut model = Message::default();
    model.number(1, FORMAT).text(2, "sparsegp").text(3, about.version).text(6, &about.description);
    model.message(7, &graph).message(8, &operators);
    for (key, value) in &about.metadata {
        let mut entry = Message::default();
        entry.text(1, key).text(2, value);
        model.message(14, &entry);
    }
    model.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_cdf;

    /// The series against the tail itself, to where it underflows.
    #[test]
    fn the_series_has_the_digits_of_the_tail() {
        let series = tail_series();
        for i in 0..400 {
            let t = 0.1 * f64::from(i) * (1.0 + 0.01 * f64::from(i));
            let s = 1.0 / (1.0 + 0.5 * t);
            let u = 2.0 * s - 1.0;
            let log: f64 =
                series.iter().enumerate().map(|(k, c)| c * (k as f64 * u.acos()).cos()).sum();
            let expected = log_mills(t) - HALF_LOG_TAU - s.ln();
            assert!((log - expected).abs() < 1e-13, "{t}: {log} {expected}");
            if t < 5.0 {
                let tail = s * (log - 0.5 * t * t).exp();
                assert!((tail / normal_cdf(-t) - 1.0).abs() < 1e-12, "{t}");
            }
        }
    }
}
