//! Test rows that a column of a file marks.

use super::{Missing, Selection, Table};
use crate::data::split::Mask;
use crate::error::{Error, Result};

impl Mask {
    /// Reads `FILE:COLUMN`: a column of zeros and ones (1 marks a test row) with a row per data row.
    ///
    /// # Errors
    /// [`Error::Invalid`] without a colon, [`Error::Cell`] for anything but 0 and 1, [`Error::Column`]
    /// with the nearest names, [`Error::File`] if the file cannot be read or marks no row or all rows.
    pub fn open(spec: &str) -> Result<Self> {
        let (path, column) = spec
            .rsplit_once(':')
            .filter(|(p, c)| !p.is_empty() && !c.is_empty())
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "the test mask `{spec}` must be FILE:COLUMN, such as `masks.csv.gz:split0`"
                ))
            })?;
        let chosen = Table::open(path)?.select(&Selection::all_inputs().inputs([column]))?;
        let mut mask = Self::new(spec, []);
        for block in chosen.missing(Missing::Refuse).blocks(1 << 14, None)? {
            for &value in block?.x.col_as_slice(0) {
                if value != 0.0 && value != 1.0 {
                    return Err(Error::Cell {
                        path: path.into(),
                        row: mask.rows() + 1,
                        column: column.into(),
                        reason: format!(
                            "`{value}` is neither 0 (training row) nor 1 (test row); choose a mask \
                             column"
                        ),
                    });
                }
                mask.push(value == 1.0);
            }
        }
        let ones = mask.count(true);
        if ones == 0 || ones == mask.rows() {
            return Err(Error::File {
                path: path.into(),
                reason: format!(
                    "column `{column}` marks {} of its {} rows as test rows; a split needs both \
                     training rows (0) and test rows (1)",
                    if ones == 0 { "none" } else { "all" },
                    mask.rows()
                ),
            });
        }
        Ok(mask)
    }
}
