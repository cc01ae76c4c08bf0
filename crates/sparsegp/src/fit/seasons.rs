//! Terms of the kernel that are known beforehand: seasons, `periodic` of a period that stays, and effects of holidays.

use super::{Dataset, FitOptions, series};
#[cfg(feature = "tables")]
use crate::data::days_of;
use crate::data::holidays::inputs_of_holidays;
use crate::error::{Error, Result, nearest};
use crate::{methods, spec};
use serde_json::json;

/// A season: its input and its length in the units of that.
struct Season<'a> {
    text: &'a str,
    input: usize,
    length: f64,
}

/// Returns none: without tables no input is a date.
#[cfg(not(feature = "tables"))]
fn days_of(_: &str) -> Option<f64> {
    None
}

/// Returns the inputs that hold dates.
pub(super) fn dates(dataset: &Dataset) -> Vec<usize> {
    let of_date = |name: &String| {
        dataset.columns.iter().any(|own| own.name == *name && own.encoding.is_date())
    };
    (0..dataset.input_names.len()).filter(|q| of_date(&dataset.input_names[*q])).collect()
}

/// Reads `1y`, `day=1w` or `12.5`.
fn read<'a>(text: &'a str, dataset: &Dataset) -> Result<Season<'a>> {
    let names = &dataset.input_names;
    let invalid = |reason: String| Err(Error::Invalid(format!("season `{text}`: {reason}")));
    let dates = dates(dataset);
    let (name, length) = match text.rsplit_once('=') {
        Some((name, length)) => (Some(name.trim()), length),
        None => (None, text),
    };
    let input = match (name, &dates[..], names.len()) {
        (Some(name), ..) => match names.iter().position(|own| own == name) {
            Some(input) => input,
            None => {
                let mut near = nearest(name, names.iter().map(String::as_str));
                if near.is_empty() {
                    near.clone_from(names);
                }
                return invalid(format!(
                    "there is no input `{name}`; there are {}",
                    near.join(", ")
                ));
            }
        },
        (None, [date], _) => *date,
        (None, _, 1) => 0,
        _ => {
            let first = names.first().map_or("", String::as_str);
            return invalid(format!("say of which input, such as `{first}={}`", text.trim()));
        }
    };
    let own = &names[input];
    let plain = |own: &String| {
        dataset
            .columns
            .iter()
            .any(|column| column.name == *own && column.encoding.categories().is_none())
    };
    if !dataset.columns.is_empty() && !plain(own) {
        return invalid(format!("`{own}` is of a category, and has no lengths"));
    }
    let length = match (days_of(length), length.trim().parse::<f64>()) {
        (Some(days), _) if dates.contains(&input) => days,
        (Some(_), _) => {
            return invalid(format!("`{own}` holds numbers: give a number in its units"));
        }
        (None, Ok(_)) if dates.contains(&input) => {
            return invalid(format!(
                "`{own}` holds dates: give a length of time such as 1y, 3mo, 1w, 1d or 12h"
            ));
        }
        (None, Ok(number)) => number,
        (None, Err(_)) => {
            return invalid("give a number, or of dates a length of time such as 1y or 1w".into());
        }
    };
    if !(length > 0.0 && length.is_finite()) {
        return invalid("its length must be positive".into());
    }
    if dataset.scaler.log_unit(input).is_some() {
        return invalid(format!(
            "`{own}` is learnt from by its logarithm (`--log-inputs`, in Python `log_inputs`), which has no seasons"
        ));
    }
    Ok(Season { text, input, length })
}

/// What stands in the place of a season to say that there is none.
const NONE: &str = "none";

/// Returns the seasons that somebody has named.
pub(super) fn named(options: &FitOptions) -> &[String] {
    match &options.seasons[..] {
        [only] if only.trim() == NONE => &[],
        all => all,
    }
}

fn is_deep(options: &FitOptions) -> bool {
    methods::find(&options.method).is_ok_and(|own| own.method.architecture().is_some())
}

fn all<'a>(dataset: &Dataset, options: &'a FitOptions) -> Result<Vec<Season<'a>>> {
    match named(options).first() {
        Some(first) if is_deep(options) => Err(Error::Invalid(format!(
            "season `{first}`: the layers of a deep model see no input as it is; choose a method of one layer"
        ))),
        _ => {
            let all: Vec<Season<'a>> =
                named(options).iter().map(|text| read(text, dataset)).collect::<Result<_>>()?;
            let again = all.iter().enumerate().find(|(i, own)| {
                all[..*i].iter().any(|o| (o.input, o.length) == (own.input, own.length))
            });
            match again {
                Some((_, own)) => {
                    Err(Error::Invalid(format!("season `{}` is given twice", own.text)))
                }
                None => Ok(all),
            }
        }
    }
}

/// Returns the term of the effects of holidays, which have one variance; empty without holidays.
///
/// # Errors
/// [`Error::Invalid`] for a deep method.
fn of_holidays(dataset: &Dataset, options: &FitOptions) -> Result<String> {
    let inputs = inputs_of_holidays(&dataset.columns);
    if inputs.is_empty() {
        return Ok(String::new());
    }
    if is_deep(options) {
        return Err(Error::Invalid(
            "holidays: the layers of a deep model see no input as it is; choose a method of one layer".into(),
        ));
    }
    if series::asked(options) {
        return Err(Error::Invalid(format!(
            "holidays: `{}` is for one input, and every holiday is another one: choose `exact` or a sparse method",
            options.method
        )));
    }
    let places: Vec<String> = inputs.iter().map(usize::to_string).collect();
    Ok(format!(" + linear(active_dims=[{}])", places.join(",")))
}

/// Returns the terms that are known beforehand: ` + periodic(…)` for each season of the options,
/// and one for the holidays of the columns; empty without either.
///
/// # Errors
/// [`Error::Invalid`] that names a season which cannot be read, or whose input is not known or is learnt from by its logarithm;
/// for either with a deep method.
pub(super) fn terms(dataset: &Dataset, options: &FitOptions) -> Result<String> {
    let term = |own: Season<'_>| {
        let scale = match options.kernel_in_data_units {
            true => 1.0,
            false => dataset.scaler.x_scale[own.input],
        };
        let base = match dataset.input_names.len() {
            1 => String::new(),
            _ => format!("base=rbf(active_dims=[{}]), ", own.input),
        };
        // ten digits, since people read them
        let period: f64 =
            format!("{:.9e}", own.length / scale).parse().unwrap_or(own.length / scale);
        format!(" + periodic({base}period={{value: {period}, frozen: true}})")
    };
    let seasons: String = all(dataset, options)?.into_iter().map(term).collect();
    Ok(seasons + &of_holidays(dataset, options)?)
}

/// Returns the options with these terms in their kernel, which is given.
///
/// # Errors
/// As for [`terms`]; [`Error::Spec`] for a kernel that cannot be read.
pub(super) fn added(dataset: &Dataset, options: &FitOptions) -> Result<FitOptions> {
    let terms = terms(dataset, options)?;
    if terms.is_empty() {
        return Ok(options.clone());
    }
    let with = |own: &str| -> Result<String> {
        if !own.trim_start().starts_with('{') {
            return Ok(format!("{}{terms}", own.trim_end()));
        }
        let all = [spec::read(own)?, spec::read(terms.trim_start_matches(" + "))?];
        Ok(json!({ "type": "sum", "kernels": all }).to_string())
    };
    let each = options.kernel.split(';').map(with).collect::<Result<Vec<_>>>()?;
    Ok(FitOptions { kernel: each.join(";"), ..options.clone() })
}

/// Says which seasons the rows are too short for, and on which holidays there are no rows.
///
/// # Errors
/// What reading the rows gives.
pub(super) fn remarks(dataset: &Dataset, options: &FitOptions) -> Result<Vec<String>> {
    let (seasons, holidays) = (all(dataset, options)?, inputs_of_holidays(&dataset.columns));
    if seasons.is_empty() && holidays.is_empty() {
        return Ok(Vec::new());
    }
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); dataset.source.inputs()];
    dataset.source.for_each_chunk(1 << 14, &mut |rows| {
        for (q, (least, most)) in ends.iter_mut().enumerate() {
            for i in 0..rows.x.nrows() {
                (*least, *most) = (least.min(rows.x[(i, q)]), most.max(rows.x[(i, q)]));
            }
        }
        Ok(())
    })?;
    let short = |own: &Season<'_>| {
        let (least, most) = ends[own.input];
        let span = (most - least) * dataset.scaler.x_scale[own.input];
        (span < 2.0 * own.length).then(|| {
            format!(
                "season `{}`: the rows span {:.1} of it, and whether it repeats shows from two on: what comes after them rests on \
                 its being there",
                own.text,
                span / own.length
            )
        })
    };
    let mut found: Vec<String> = seasons.iter().filter_map(short).collect();
    let absent: Vec<&String> = holidays
        .into_iter()
        .filter(|q| ends[*q].1 <= 0.0)
        .map(|q| &dataset.input_names[q])
        .collect();
    if let Some(first) = absent.first() {
        let more = match absent.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        found.push(format!(
            "holidays: no row falls on `{first}`{more}: nothing is learnt of such days but how much holidays differ"
        ));
    }
    Ok(found)
}
