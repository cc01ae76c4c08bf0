//! What was found, as JSON.

use super::{Curve, Explainer, Kind, Sensitivity, Share};
use crate::linalg::Mat;
use serde_json::{Value, json};

impl Explainer<'_> {
    /// Returns what was found as JSON: `responses`; `shares` with, for each response, its `deviation` and `inputs` (`first` and
    /// `total`, with their intervals); and `effects`, one for each response and curve. Values are numbers, of dates days since
    /// 1970-01-01, of categories labels; ends of intervals that are not known are null.
    pub fn to_json(&self, shares: &[Sensitivity], curves: &[Curve]) -> Value {
        let responses = self.responses();
        let of = |own: &Share| json!({ "mean": own.mean, "lower": own.lower, "upper": own.upper });
        let share = |(response, own): (&String, &Sensitivity)| {
            let one = |(j, column): (usize, &super::Column)| {
                json!({
                    "input": column.name, "first": of(&own.first[j]), "total": of(&own.total[j]),
                })
            };
            let inputs: Vec<Value> = self.columns.iter().enumerate().map(one).collect();
            json!({ "response": response, "deviation": own.deviation, "inputs": inputs })
        };
        let effect = |c: usize, curve: &Curve| {
            let column = &self.columns[curve.column];
            let values = match column.kind {
                Kind::Levels => json!(curve.labels),
                Kind::Numbers | Kind::Dates => json!(curve.at),
            };
            let kind = match column.kind {
                Kind::Numbers => "numbers",
                Kind::Dates => "dates",
                Kind::Levels => "categories",
            };
            let own = |of: &Mat<f64>| of.col_as_slice(c).to_vec();
            json!({
                "response": responses[c], "input": column.name, "kind": kind, "centred": curve.centred,
                "values": values, "mean": own(&curve.mean), "lower": own(&curve.lower), "upper": own(&curve.upper),
            })
        };
        let all =
            (0..responses.len()).flat_map(|c| curves.iter().map(move |curve| effect(c, curve)));
        let effects: Vec<Value> = all.collect();
        let shares: Vec<Value> = responses.iter().zip(shares).map(share).collect();
        json!({ "responses": responses, "shares": shares, "effects": effects })
    }
}
