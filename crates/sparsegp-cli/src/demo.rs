//! stub
use crate::context::*;
use crate::fail::*;
/// x
pub fn run(_c: &Context) -> Result<Reply> {
    Err(Fail::usage("x"))
}
