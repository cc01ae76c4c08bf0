//! Rows of which each stands for any positive number of rows, whole or not.

use sparsegp::data::{InMemory, Rows, Source};

/// The rows and that number, N/B.
#[derive(Clone)]
pub struct Batch {
    pub rows: InMemory,
    pub scale: f64,
}

impl Source for Batch {
    fn rows(&self) -> usize {
        self.rows.rows()
    }
    fn inputs(&self) -> usize {
        self.rows.inputs()
    }
    fn outputs(&self) -> usize {
        self.rows.outputs()
    }
    fn is_plain(&self) -> bool {
        self.rows.is_plain()
    }
    fn scale(&self) -> f64 {
        self.scale
    }
    fn is_resident(&self) -> bool {
        self.rows.is_resident()
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> sparsegp::Result<()>,
    ) -> sparsegp::Result<()> {
        self.rows.for_each_chunk(chunk_rows, f)
    }
}
