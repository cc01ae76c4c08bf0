//! A header of C99 with the prediction of a model.

use super::comment::{block, escaped, literal};
use super::graph::{Binary, Graph, Id, Op, Unary};
use super::program::{Block, Lower, Program, Sum};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Characters from which on an expression gets a name.
const LONG: usize = 72;

/// What is written around the formula.
pub(super) struct Header<'a> {
    /// Prefix of every name.
    pub(super) name: &'a str,
    /// Lines about the model.
    pub(super) about: Vec<String>,
    /// Names of inputs, with what they are.
    pub(super) inputs: Vec<[String; 2]>,
    /// Names of the columns of outputs, by the name of the output.
    pub(super) columns: Vec<(&'static str, Vec<String>)>,
}

/// Statements, and which values have names.
struct Body<'a> {
    graph: &'a Graph,
    text: String,
    /// How often each value is used.
    uses: HashMap<Id, usize>,
    /// Names of values of the row.
    of_row: HashMap<Id, String>,
    /// Names of values of a line, within its loop.
    of_line: HashMap<Id, String>,
    next: usize,
}

fn operator(f: Binary) -> Option<char> {
    Some(match f {
        Binary::Add => '+',
        Binary::Div => '/',
        Binary::Mul => '*',
        Binary::Sub => '-',
        Binary::Max | Binary::Min | Binary::Pow => return None,
    })
}

impl Body<'_> {
    fn known(&self, id: Id) -> Option<&String> {
        self.of_row.get(&id).or_else(|| self.of_line.get(&id))
    }

    /// Returns a value as an operand.
    fn text_of(&self, id: Id, name: &str) -> String {
        if let Some(known) = self.known(id) {
            return known.clone();
        }
        match self.graph.op(id) {
            Op::Constant(bits) => literal(f64::from_bits(bits)),
            Op::Input(d) => format!("x[{d}]"),
            Op::Scalar(at) => format!("s{at}"),
            Op::Column(c) => format!("p[{c}]"),
            Op::Unary(f, a) => {
                let a = self.text_of(a, name);
                match f {
                    Unary::Abs => format!("fabs({a})"),
                    Unary::Asinh => format!("asinh({a})"),
                    Unary::Cos => format!("cos({a})"),
                    Unary::Exp => format!("exp({a})"),
                    Unary::Expm1 => format!("expm1({a})"),
                    Unary::Log => format!("log({a})"),
                    Unary::NormalCdf => format!("(0.5 * erfc(-0.70710678118654752 * {a}))"),
                    Unary::Sin => format!("sin({a})"),
                    Unary::Sqrt => format!("sqrt({a})"),
                }
            }
            Op::Binary(f, a, b) => {
                let (a, b) = (self.text_of(a, name), self.text_of(b, name));
                match (operator(f), f) {
                    (Some(sign), _) => format!("({a} {sign} {b})"),
                    (None, Binary::Max) => format!("{name}_larger({a}, {b})"),
                    (None, Binary::Min) => format!("{name}_smaller({a}, {b})"),
                    (None, _) => format!("pow({a}, {b})"),
                }
            }
        }
    }

    /// Returns whether a value needs no name.
    fn is_leaf(&self, id: Id) -> bool {
        !matches!(self.graph.op(id), Op::Unary(..) | Op::Binary(..))
    }

    /// Names a value of the row, or of a line.
    fn name(&mut self, id: Id, line: bool, header: &str) {
        let text = self.text_of(id, header);
        let text = text
            .strip_prefix('(')
            .and_then(|t| t.strip_suffix(')'))
            .filter(|t| balanced(t))
            .unwrap_or(&text);
        let own = format!("t{}", self.next);
        self.next += 1;
        let space = if line { "        " } else { "    " };
        let _ = writeln!(self.text, "{space}const double {own} = {text};");
        if line {
            self.of_line.insert(id, own)
        } else {
            self.of_row.insert(id, own)
        };
    }

    /// Names what is used more than once, what is `wanted`, and what is long, of all that values are made of.
    fn statements(&mut self, of: &[Id], wanted: &HashSet<Id>, line: bool, header: &str) {
        for id in self.graph.order(of) {
            if self.graph.depends(id).line != line || self.known(id).is_some() || self.is_leaf(id) {
                continue;
            }
            let often = self.uses.get(&id).is_some_and(|uses| *uses > 1);
            if often || wanted.contains(&id) || self.text_of(id, header).len() > LONG {
                self.name(id, line, header);
            }
        }
    }
}

/// Returns whether every parenthesis of a text is closed after it was opened.
fn balanced(text: &str) -> bool {
    let mut open = 0_i64;
    text.chars().all(|c| {
        open += i64::from(c == '(') - i64::from(c == ')');
        open >= 0
    })
}

/// Writes numbers of an array, several on a line.
fn numbers(text: &mut String, all: impl Iterator<Item = f64>) {
    let mut width = 4;
    text.push_str("    ");
    for (i, value) in all.enumerate() {
        let own = literal(value);
        if i > 0 {
            text.push(',');
            if width + own.len() > 108 {
                text.push_str("\n    ");
                width = 4;
            } else {
                text.push(' ');
            }
        }
        width += own.len() + 2;
        text.push_str(&own);
    }
    text.push('\n');
}

fn array(text: &mut String, name: &str, len: usize, all: impl Iterator<Item = f64>) {
    let _ = writeln!(text, "static const double {name}[{len}] = {{");
    numbers(text, all);
    text.push_str("};\n");
}

/// Writes the tables of a block.
fn tables(text: &mut String, name: &str, at: usize, block: &Block) {
    let columns = block.table.len();
    if columns > 0 {
        let all = (0..block.lines).flat_map(|j| block.table.iter().map(move |column| column[j]));
        array(text, &format!("{name}_points_{at}"), columns * block.lines, all);
    }
    for (s, sum) in &block.sums {
        let own = format!("{name}_sum_{s}");
        match sum {
            Sum::Weighted(all) | Sum::Image(_, all) => {
                array(text, &own, all.len(), all.iter().copied())
            }
            Sum::Product(Lower { values, .. })
            | Sum::Solution(Lower { values, .. })
            | Sum::Refined(Lower { values, .. }, _) => {
                array(text, &own, values.len(), values.iter().copied());
            }
        }
    }
}

const FUNCTIONS: [(&str, &str); 6] = [
    (
        "larger",
        "static inline double NAME_larger(double a, double b)\n{\n    return a < b ? b : a;\n}\n",
    ),
    (
        "smaller",
        "static inline double NAME_smaller(double a, double b)\n{\n    return b < a ? b : a;\n}\n",
    ),
    (
        "weighted",
        "static inline double NAME_weighted(const double *w, const double *v, int m)\n{\n    double sum = 0.0;\n    int j;\n    \
         for (j = 0; j < m; j++)\n        sum += w[j] * v[j];\n    return sum;\n}\n",
    ),
    (
        "product",
        "/* |G v|^2, G lower triangular, row after row */\nstatic inline double NAME_product(const double *g, const double *v, int m)\n\
         {\n    double sum = 0.0;\n    int i, j;\n    for (i = 0; i < m; i++) {\n        double own = 0.0;\n        \
         for (j = 0; j <= i; j++)\n            own += *g++ * v[j];\n        sum += own * own;\n    }\n    return sum;\n}\n",
    ),
    (
        "solution",
        "/* |v|^2 of what v becomes: the solution of L v = (v before), L lower triangular, row after row */\n\
         static inline double NAME_solution(const double *l, double *v, int m)\n{\n    double sum = 0.0;\n    int i, j;\n    \
         for (i = 0; i < m; i++) {\n        double own = v[i];\n        for (j = 0; j < i; j++)\n            own -= *l++ * v[j];\n        \
         v[i] = own / *l++;\n        sum += v[i] * v[i];\n    }\n    return sum;\n}\n",
    ),
    (
        "image",
        "/* |A v|^2, A of r rows */\nstatic inline double NAME_image(const double *a, int r, const double *v, int m)\n{\n    \
         double sum = 0.0;\n    int i, j;\n    for (i = 0; i < r; i++) {\n        double own = 0.0;\n        \
         for (j = 0; j < m; j++)\n            own += *a++ * v[j];\n        sum += own * own;\n    }\n    return sum;\n}\n",
    ),
];

/// Writes statements for a block, after which those of its sums are known that are needed.
fn of_block(body: &mut Body<'_>, name: &str, at: usize, block: &Block, needed: &HashSet<usize>) {
    let order = body.graph.order(&[block.body]);
    // what a line needs of the row has a name before
    let mut wanted = HashSet::new();
    for id in &order {
        if body.graph.depends(*id).line {
            wanted.extend(body.graph.operands(*id));
        }
    }
    body.statements(&[block.body], &wanted, false, name);
    let (lines, columns) = (block.lines, block.table.len());
    let _ = writeln!(body.text, "    for (j = 0; j < {lines}; j++) {{");
    if columns > 0 && order.iter().any(|id| matches!(body.graph.op(*id), Op::Column(_))) {
        let _ =
            writeln!(body.text, "        const double *p = {name}_points_{at} + {columns} * j;");
    }
    body.of_line.clear();
    body.statements(&[block.body], &HashSet::new(), true, name);
    let value = body.text_of(block.body, name);
    let _ = writeln!(body.text, "        v[j] = {value};\n    }}");
    body.of_line.clear();
    // a solution overwrites the values: of several each gets a copy
    let last = |sum: &Sum| matches!(sum, Sum::Solution(_) | Sum::Refined(..));
    let several = block.sums.iter().filter(|(s, sum)| needed.contains(s) && last(sum)).count() > 1;
    let mut sums: Vec<&(usize, Sum)> =
        block.sums.iter().filter(|(s, _)| needed.contains(s)).collect();
    sums.sort_by_key(|(_, sum)| last(sum));
    for (s, sum) in sums {
        let own = match sum {
            Sum::Weighted(_) => format!("weighted({name}_sum_{s}, v, {lines})"),
            Sum::Product(_) => format!("product({name}_sum_{s}, v, {lines})"),
            Sum::Solution(_) | Sum::Refined(..) if several => {
                let _ =
                    writeln!(body.text, "    for (j = 0; j < {lines}; j++)\n        w[j] = v[j];");
                format!("solution({name}_sum_{s}, w, {lines})")
            }
            Sum::Solution(_) | Sum::Refined(..) => format!("solution({name}_sum_{s}, v, {lines})"),
            Sum::Image(rows, _) => format!("image({name}_sum_{s}, {rows}, v, {lines})"),
        };
        let _ = writeln!(body.text, "    const double s{s} = {name}_{own};");
    }
}

/// Writes a function with these outputs, of which each goes to a pointer.
fn function(
    text: &mut String,
    program: &Program,
    name: &str,
    suffix: &str,
    outputs: &[(&'static str, &str)],
) {
    let graph = &program.graph;
    let ends: Vec<(&str, Vec<Id>)> = outputs
        .iter()
        .filter_map(|(of, to)| program.output(of).map(|own| (*to, own.values.clone())))
        .collect();
    let roots: Vec<Id> = ends.iter().flat_map(|(_, ids)| ids.clone()).collect();
    let mut uses: HashMap<Id, usize> = HashMap::new();
    let bodies: Vec<Id> = program.blocks.iter().map(|block| block.body).collect();
    let all: Vec<Id> = roots.iter().chain(&bodies).copied().collect();
    for id in graph.order(&all) {
        graph.operands(id).for_each(|of| *uses.entry(of).or_default() += 1);
    }
    let needed = program.sums_of(&roots);
    let (of_row, of_line) = (HashMap::new(), HashMap::new());
    let mut body = Body { graph, text: String::new(), uses, of_row, of_line, next: 0 };
    let mut longest = 0;
    for (at, block) in program.blocks.iter().enumerate() {
        if block.sums.iter().any(|(s, _)| needed.contains(s)) {
            of_block(&mut body, name, at, block, &needed);
            longest = block.lines.max(longest);
        }
    }
    body.statements(&roots, &HashSet::new(), false, name);
    for (to, ids) in &ends {
        for (p, id) in ids.iter().enumerate() {
            let value = body.text_of(*id, name);
            let _ = writeln!(body.text, "    {to}[{p}] = {value};");
        }
    }
    let mut start = match longest {
        0 => String::new(),
        lines => format!("    double v[{lines}];\n    int j;\n"),
    };
    if body.text.contains(" w[j] = v[j]") {
        let _ = writeln!(start, "    double w[{longest}];");
    }
    if !body.text.contains("x[") {
        start.push_str("    (void)x;\n");
    }
    let pointers: Vec<String> = ends.iter().map(|(to, _)| format!("double *{to}")).collect();
    let _ = writeln!(
        text,
        "static inline void {name}_{suffix}(const double *x, {})\n{{\n{start}{}}}\n",
        pointers.join(", "),
        body.text
    );
}

/// Writes the comment of a function.
fn about(text: &mut String, header: &Header<'_>, outputs: &[(&'static str, &str)], what: &str) {
    let mut lines = vec![what.to_owned()];
    for (of, to) in outputs {
        let found = header.columns.iter().find(|(name, _)| name == of);
        let all = found.map(|(_, columns)| columns.as_slice()).unwrap_or_default();
        let listed: Vec<String> =
            all.iter().enumerate().map(|(p, c)| format!("{to}[{p}]: {}", escaped(c))).collect();
        lines.extend(listed);
    }
    text.push_str(&block(&lines));
}

/// Returns the whole header.
pub(super) fn header(program: &Program, header: &Header<'_>) -> String {
    let name = header.name;
    let upper = name.to_ascii_uppercase();
    let mut text = String::new();
    let mut lines = header.about.clone();
    lines.push(String::new());
    lines.push(match header.inputs.len() {
        1 => "Input x[0], in the units of the table:".into(),
        count => format!("Inputs x[0], ..., x[{}], in the units of the table:", count - 1),
    });
    for (d, [input, kind]) in header.inputs.iter().enumerate() {
        lines.push(format!("  x[{d}]  {}: {}", escaped(input), escaped(kind)));
    }
    lines.push(String::new());
    lines.push("Nothing is allocated, and all tables are constant: functions may be called from several threads.".into());
    lines.push(
        "NaN among the inputs that matter makes results NaN. Compile without -ffast-math.".into(),
    );
    text.push_str(&block(&lines));
    let about_model = std::mem::take(&mut text);
    let _ = writeln!(text, "#define {upper}_INPUTS {}", header.inputs.len());
    for (define, of) in
        [("OUTPUTS", "mean"), ("CLASSES", "probabilities"), ("LATENTS", "latent_mean")]
    {
        if let Some(own) = program.output(of) {
            let _ = writeln!(text, "#define {upper}_{define} {}", own.values.len());
        }
    }
    text.push('\n');
    for (at, block) in program.blocks.iter().enumerate() {
        tables(&mut text, name, at, block);
    }
    let mut functions = String::new();
    if program.output("mean").is_some() {
        let outputs = [("mean", "mean"), ("sd", "sd")];
        about(&mut functions, header, &outputs, "Mean and standard deviation of an observation.");
        function(&mut functions, program, name, "predict", &outputs);
    }
    if program.output("probabilities").is_some() {
        let outputs = [("probabilities", "p")];
        about(&mut functions, header, &outputs, "Probabilities of the classes.");
        function(&mut functions, program, name, "probabilities", &outputs);
    }
    let outputs = [("latent_mean", "mean"), ("latent_sd", "sd")];
    about(
        &mut functions,
        header,
        &outputs,
        "Mean and standard deviation of a latent function: without noise.",
    );
    function(&mut functions, program, name, "latent", &outputs);
    for (own, code) in FUNCTIONS {
        if functions.contains(&format!("{name}_{own}(")) {
            text.push('\n');
            text.push_str(&code.replace("NAME", name));
        }
    }
    text.push('\n');
    text.push_str(&functions);
    // another header of this name is not a repetition of this one
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let guard = format!("{upper}_{hash:016X}_H");
    format!("{about_model}#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n\n{text}#endif\n")
}
