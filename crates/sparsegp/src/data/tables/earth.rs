//! Places on Earth in a table: which columns are latitudes and longitudes.

use super::columns::{Selection, column, position};
use super::table::Table;
use crate::data::encoding::Encoding;
use crate::error::Result;

impl Table {
    /// Returns a selection of this table in which these pairs of input columns, latitude and longitude in degrees, are places.
    ///
    /// # Errors
    /// [`Error::Column`](crate::error::Error::Column) for a column that is not there (with the nearest names), is not an input, holds dates or text,
    /// is in two places, or has standard deviations.
    pub fn with_places(
        &self,
        mut selection: Selection,
        pairs: &[(String, String)],
    ) -> Result<Selection> {
        if pairs.is_empty() {
            return Ok(selection);
        }
        let mut names = self.inputs_of(&selection)?;
        let mut taken: Vec<&String> = Vec::new();
        for name in pairs.iter().flat_map(|(latitude, longitude)| [latitude, longitude]) {
            position(&self.path, &self.columns, name)?;
            let holds = match selection.encodings.get(name) {
                None | Some(Encoding::Number) => None,
                Some(own) if own.is_date() => Some("dates"),
                Some(_) => Some("text"),
            };
            let noisy = selection.deviations.iter().any(|(of, own)| of == name || own == name);
            let reason = match holds {
                _ if taken.contains(&name) => {
                    "is given twice: a place is a latitude and a longitude, each a column that no other place has".into()
                }
                _ if !names.contains(name) => {
                    "is not an input column, and a place is of two: leave it out of the other options".into()
                }
                Some(holds) => {
                    format!("holds {holds}, and latitudes and longitudes are numbers in degrees")
                }
                None if noisy => {
                    "has to do with standard deviations of inputs, which places cannot have".into()
                }
                None => {
                    taken.push(name);
                    continue;
                }
            };
            return Err(column(&self.path, name, reason));
        }
        names.retain(|name| !pairs.iter().any(|(_, longitude)| longitude == name));
        selection.inputs = Some(names);
        for (latitude, longitude) in pairs {
            let longitude = longitude.clone();
            selection.encodings.insert(latitude.clone(), Encoding::Place { longitude });
        }
        Ok(selection)
    }
}
