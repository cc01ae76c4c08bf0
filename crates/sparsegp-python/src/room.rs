//! Whether there is memory for a result, asked before anything is allocated: what does not fit would end the process.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Refuses a result (with what it takes to make it) of so many numbers, which are the sum of these products, where there is no
/// memory for it. `what` is it in words, `remedy` what to do instead.
pub fn room(what: &str, products: &[&[usize]], remedy: &str) -> PyResult<()> {
    let product = |factors: &&[usize]| factors.iter().map(|f| *f as f64).product::<f64>();
    let bytes = 8.0 * products.iter().map(product).sum::<f64>();
    // small results are not worth a question
    if bytes < 64e6 {
        return Ok(());
    }
    let there = available();
    if bytes < isize::MAX as f64 && there.is_none_or(|there| bytes <= there) {
        let mut trial: Vec<u8> = Vec::new();
        // limits of the process, too
        if trial.try_reserve_exact(bytes as usize).is_ok() {
            return Ok(());
        }
    }
    let there = there.map_or("less is".to_owned(), |there| format!("{} are", size(there)));
    Err(PyMemoryError::new_err(format!(
        "{what} would take {} of memory, and {there} available: {remedy}",
        size(bytes)
    )))
}

/// Returns a number of bytes in words.
fn size(bytes: f64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    match value {
        value if value >= 1e5 => format!("{value:.1e} {}", units[unit]),
        value if value < 10.0 && unit > 0 => format!("{value:.1} {}", units[unit]),
        value => format!("{value:.0} {}", units[unit]),
    }
}

/// Returns bytes that the system and the group of the process leave; none where the system does not
/// say.
fn available() -> Option<f64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<f64>().ok();
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(1024.0 * line.split_whitespace().nth(1)?.parse::<f64>().ok()?)
    };
    let system = field("MemAvailable:")? + field("SwapFree:").unwrap_or(0.0);
    // of a container: the first and the second kind of groups
    let groups = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ];
    let left = |(most, used): (&str, &str)| Some(number(most)? - number(used)?);
    Some(groups.into_iter().filter_map(left).fold(system, f64::min).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in [
            (12.0, "12 bytes"),
            (9.96e8, "996 MB"),
            (1.28e12, "1.3 TB"),
            (8e12, "8.0 TB"),
            (2.4e10, "24 GB"),
            (8e30, "8.0e15 PB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
