//! Predictions of a fitted model as code for elsewhere: a header of C, a model of ONNX.
//!
//! An [`Export`] is the closed formula of mean and standard deviation, from the numbers that a table has. It exists where the
//! posterior is Gaussian at points (sparse or exact inference, or an average over hyperparameters of it), for the kernels and
//! mean functions of the library but those that messages name, and is compared with the model's own predictions before anybody
//! gets it. What has no such formula is refused.
//!
//! ```
//! use sparsegp::engine::Cpu;
//! use sparsegp::export::Export;
//! use sparsegp::fit::{Dataset, FitOptions, fit};
//! use sparsegp::linalg::Mat;
//!
//! let x = Mat::from_fn(60, 1, |i, _| i as f64 / 10.0);
//! let y = Mat::from_fn(60, 1, |i, _| x[(i, 0)].sin() + 0.1 * (7.0 * i as f64).cos());
//! let options = FitOptions { method: "titsias2025".into(), inducing: Some(8), ..FitOptions::default() };
//! let fitted = fit(&Dataset::from_arrays(x, y, true)?, &options, &Cpu::default(), &mut ())?;
//! let header = Export::new(&fitted)?.to_c("wave")?;
//! assert!(header.contains("static inline void wave_predict(const double *x, double *mean, double *sd)"));
//! # Ok::<(), sparsegp::Error>(())
//! ```

mod c;
mod check;
mod comment;
mod form;
mod graph;
mod kernels;
mod observe;
mod onnx;
mod program;
mod protobuf;

pub use comment::name_like;

use comment::escaped;

use crate::data::{EARTH_RADIUS, Encoding};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::linalg::MatRef;
use program::Program;
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// Most numbers in a header of C: some 50 MB of text.
const MOST_IN_C: usize = 2_000_000;

/// Most numbers in a model of ONNX: 800 MB, of the 2 GB that its files may have.
const MOST_IN_ONNX: usize = 100_000_000;

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A header of C99.
    C,
    /// A model of ONNX.
    Onnx,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::C, Self::Onnx];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Onnx => "onnx",
        }
    }

    /// Returns the ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::C => "h",
            Self::Onnx => "onnx",
        }
    }

    /// Finds a format by its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    /// Finds the format that the ending of a file says.
    pub fn of_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        Self::ALL.into_iter().find(|own| ending.eq_ignore_ascii_case(own.ending()))
    }
}

/// An input of an exported function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportedInput {
    /// Its name: that of a column, or `column=category`.
    pub name: String,
    /// What its number is.
    pub kind: String,
}

/// What an exported function gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportedOutput {
    /// `mean` and `sd` of observations or `probabilities` of classes, `latent_mean`, `latent_sd`.
    pub name: &'static str,
    /// Names of its columns: targets, labels or latent functions.
    pub columns: Vec<String>,
}

/// The prediction of a fitted model as a closed formula.
#[derive(Debug)]
pub struct Export<'a> {
    fitted: &'a Fitted,
    program: Program,
}

impl<'a> Export<'a> {
    /// Finds the formula, and compares it with the model's predictions at rows inside and far outside of the data.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names what has no formula here and what to use instead, or says that rounding makes the
    /// formula differ from the model by more than 10⁻⁶.
    pub fn new(fitted: &'a Fitted) -> Result<Self> {
        let program = form::program(fitted)?;
        check::check(&program, fitted, check::OF_VARIANCE)?;
        Ok(Self { fitted, program })
    }

    /// Returns the inputs in their order.
    pub fn inputs(&self) -> Vec<ExportedInput> {
        let one = |column: &crate::data::InputColumn| {
            let names = column.input_names().into_iter().enumerate();
            names
                .map(|(at, name)| ExportedInput { name, kind: kind(column, at) })
                .collect::<Vec<_>>()
        };
        self.fitted.columns.iter().flat_map(one).collect()
    }

    /// Returns the outputs that there are.
    pub fn outputs(&self) -> Vec<ExportedOutput> {
        let columns = |name: &str, count: usize| match name {
            "mean" | "sd" => self.fitted.target_names.clone(),
            "probabilities" => match &self.fitted.classes {
                Some(classes) => classes.labels().to_vec(),
                None => (0..count).map(|class| class.to_string()).collect(),
            },
            _ if count == self.fitted.target_names.len() => self.fitted.target_names.clone(),
            _ => (0..count).map(|l| format!("f_{l}")).collect(),
        };
        let all = self.program.outputs.iter();
        all.map(|own| ExportedOutput {
            name: own.name,
            columns: columns(own.name, own.values.len()),
        })
        .collect()
    }

    /// Says what is not in the outputs that predictions of the model have, if anything.
    pub fn remark(&self) -> Option<String> {
        let likelihood = &self.fitted.model.likelihood;
        let name = likelihood.name();
        if self.program.output("mean").is_none() && self.program.output("probabilities").is_none() {
            return Some(format!(
                "observations of the likelihood `{name}` have no closed formula here: only latent functions are exported"
            ));
        }
        let extra = likelihood.extra().filter(|extra| extra.default.is_some())?;
        let default = extra.default.unwrap_or_default();
        (self.fitted.extra_name.is_some() || extra.name != "variance")
            .then(|| format!("observations are those of rows whose {} is {default}", extra.name))
    }

    /// Evaluates the formula at rows B×D in the data's units: for each output its columns, row by row. What languages are
    /// translated to, for comparisons.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns.
    pub fn evaluate(&self, x: MatRef<'_, f64>) -> Result<Vec<Vec<Vec<f64>>>> {
        let inputs = self.fitted.input_names.len();
        if x.ncols() != inputs {
            return Err(Error::shape(
                "inputs of the formula",
                format!("{inputs} columns"),
                x.ncols(),
            ));
        }
        let mut all = vec![Vec::with_capacity(x.nrows()); self.program.outputs.len()];
        for i in 0..x.nrows() {
            let row: Vec<f64> = (0..inputs).map(|d| x[(i, d)]).collect();
            all.iter_mut().zip(self.program.at(&row)).for_each(|(all, own)| all.push(own));
        }
        Ok(all)
    }

    /// Writes it in a format; `name` is used only in C.
    ///
    /// # Errors
    /// As for [`Export::to_c`] and [`Export::to_onnx`].
    pub fn to_bytes(&self, format: Format, name: &str) -> Result<Vec<u8>> {
        match format {
            Format::C => self.to_c(name).map(String::into_bytes),
            Format::Onnx => self.to_onnx(),
        }
    }

    /// Returns the kernels, in words.
    fn kernels(&self) -> String {
        let all = self.fitted.model.kernels.iter();
        all.map(|kernel| kernel_words(&kernel.to_json())).collect::<Vec<_>>().join("; ")
    }

    /// Returns lines about the model, for whoever finds the file.
    fn about(&self) -> Vec<String> {
        let fitted = self.fitted;
        let quoted: Vec<String> =
            fitted.target_names.iter().map(|name| comment::escaped(name)).collect();
        let mut lines = vec![
            format!(
                "Predictions of {} by a Gaussian process: sparsegp {}.",
                quoted.join(", "),
                env!("CARGO_PKG_VERSION")
            ),
            format!(
                "Method {}, kernel {}, likelihood {}, {} training rows.",
                fitted.model.method.name(),
                escaped(&self.kernels()),
                escaped(fitted.model.likelihood.name()),
                fitted.rows
            ),
        ];
        lines.extend(self.remark().map(|remark| format!("Note: {remark}.")));
        lines
    }

    /// Returns a header of C99 that needs only `<math.h>`, without allocation and safe for threads:
    /// functions `NAME_predict(x, mean, sd)` of an observation (`NAME_probabilities(x, p)` of
    /// classes) and `NAME_latent(x, mean, sd)` of latent functions, in the data's units.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that C does not have, and for so many points that the header would be over some 50 MB.
    pub fn to_c(&self, name: &str) -> Result<String> {
        if !comment::is_name(name) {
            return Err(Error::Invalid(format!(
                "`{name}` is not a name of C: take letters, digits and `_`, a letter first, at most 40 and no keyword, as in `{}`",
                comment::name_like(name)
            )));
        }
        let numbers = self.program.numbers();
        if numbers > MOST_IN_C {
            return Err(Error::Invalid(format!(
                "the header would have {numbers} numbers, some {} MB: {}",
                numbers / 40_000,
                self.smaller()
            )));
        }
        let inputs = self.inputs().into_iter().map(|own| [own.name, own.kind]).collect();
        let columns = self.outputs().into_iter().map(|own| (own.name, own.columns)).collect();
        Ok(c::header(&self.program, &c::Header { name, about: self.about(), inputs, columns }))
    }

    /// Returns a model of ONNX (operators of version 17, numbers of 64 bits): from `x`, N×D in the data's units, the outputs that
    /// [`Export::outputs`] lists, N×P each. Names of inputs and outputs, kernel, likelihood, method and version are its metadata.
    ///
    /// # Errors
    /// [`Error::Invalid`] for so many points that it would be over 800 MB, and where inverses of factors, which take the
    /// place of triangular systems and are refined where need be, lose so many digits that it differs from the model by more than 10⁻⁶.
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        // triangles become squares; before inverses are made
        self.check_size(2 * self.program.numbers())?;
        let solved = |(_, sum): &(usize, program::Sum)| matches!(sum, program::Sum::Solution(_));
        let mut own = None;
        if self.program.blocks.iter().flat_map(|block| &block.sums).any(solved) {
            let solved = |refined: bool| {
                let mut program = self.program.clone();
                program.without_solutions(refined);
                let part = if refined { check::OF_VARIANCE } else { check::STRICT };
                check::check(&program, self.fitted, part)?;
                Ok::<_, Error>(program)
            };
            own = Some(solved(false).or_else(|_| solved(true))?);
        }
        let program = own.as_ref().unwrap_or(&self.program);
        self.check_size(2 * program.numbers())?;
        let inputs = self.inputs();
        let outputs: serde_json::Map<String, serde_json::Value> = self
            .outputs()
            .into_iter()
            .map(|own| (own.name.to_owned(), json!(own.columns)))
            .collect();
        let metadata = vec![
            ("inputs", json!(inputs).to_string()),
            ("outputs", json!(outputs).to_string()),
            ("kernel", self.kernels()),
            ("likelihood", self.fitted.model.likelihood.name().to_owned()),
            ("method", self.fitted.model.method.name().to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        let names: Vec<&str> = inputs.iter().map(|own| own.name.as_str()).collect();
        let doc = |own: ExportedOutput| (own.name.to_owned(), own.columns.join(", "));
        let about = onnx::About {
            version: env!("CARGO_PKG_VERSION"),
            description: self.about().join(" "),
            inputs: names.join(", "),
            outputs: self.outputs().into_iter().map(doc).collect(),
            width: inputs.len(),
            metadata,
        };
        Ok(onnx::model(program, &about))
    }

    /// Refuses a model of ONNX of more numbers than it may have.
    fn check_size(&self, numbers: usize) -> Result<()> {
        if numbers <= MOST_IN_ONNX {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the model would have {numbers} numbers, some {} MB: {}",
            numbers / 125_000,
            self.smaller()
        )))
    }

    /// Returns what makes an export smaller.
    fn smaller(&self) -> &'static str {
        match self.fitted.posterior.components_count() {
            1 => "fit with fewer inducing points (`--method titsias2025 --inducing 500`)",
            _ => {
                "it is an average over hyperparameters, each with all rows; fit with `--hyperparameters plug-in`, or with \
                 inducing points (`--method titsias2025`)"
            }
        }
    }
}

/// Returns what the number at this place of those of a column is.
fn kind(column: &crate::data::InputColumn, at: usize) -> String {
    match &column.encoding {
        Encoding::Number => "number".into(),
        Encoding::Calendar(all) if at > 0 => {
            let name = all.names().nth(at - 1).unwrap_or_default();
            format!("1 on days of column `{}` that are `{name}`, else 0", column.name)
        }
        Encoding::Date | Encoding::Calendar(_) => "days since 1970-01-01 00:00 UTC".into(),
        Encoding::Place { longitude } => {
            let of = [
                "cos(latitude) * cos(longitude)",
                "cos(latitude) * sin(longitude)",
                "sin(latitude)",
            ][at];
            format!("{EARTH_RADIUS} * {of} of the columns `{}` and `{longitude}`", column.name)
        }
        Encoding::OneHot(all) => {
            let of = if all.labels().len() == 2 { 1 } else { at };
            format!("1 where column `{}` is `{}`, else 0", column.name, all.shown(of))
        }
        Encoding::Filled(_) if at > 0 => {
            format!("1 where column `{}` is missing, else 0", column.name)
        }
        Encoding::Filled(own) => {
            let what = if own.date { "days since 1970-01-01 00:00 UTC" } else { "number" };
            format!("{what}, {} where it is missing", own.value)
        }
        Encoding::Code(all) => {
            let codes: Vec<String> = (0..all.labels().len())
                .map(|code| format!("{code} is `{}`", all.shown(code)))
                .collect();
            format!("place of the category of column `{}`, where {}", column.name, codes.join(", "))
        }
    }
}

/// Returns the types of a kernel and of what it is made of.
fn kernel_words(json: &serde_json::Value) -> String {
    let name = json["type"].as_str().unwrap_or("?").to_owned();
    let inner = match &json["kernels"] {
        serde_json::Value::Array(all) => all.iter().map(kernel_words).collect::<Vec<_>>(),
        _ => return name,
    };
    match name.as_str() {
        "sum" => inner.join(" + "),
        "product" => format!("({})", inner.join(") * (")),
        _ => format!("{name}({})", inner.join(", ")),
    }
}
