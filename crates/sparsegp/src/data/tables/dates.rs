//! Dates and moments as days since 1970-01-01, from text and as text.

use chrono::format::{Parsed, StrftimeItems, parse};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Weekday};

/// Reads a date or a moment as days since 1970-01-01 00:00 UTC: `2024-12-31`, `2024/12/31`, with a time after a blank or a
/// `T` (`13`, `13:05`, `13:05:00`, `13:05:00.25`), and after that `Z`, ` UTC`, ` GMT` or an offset such as `+01:00`; also
/// `20241231T130500` and `Tue, 31 Dec 2024 13:05:00 GMT`. Without an offset it is taken for UTC. None for anything else.
///
/// ```
/// use sparsegp::data::days;
/// assert_eq!(days("1970-01-02 12:00"), Some(1.5));
/// assert_eq!(days("2024-02-29"), Some(19782.0));
/// assert_eq!(days("29.2.2024"), None);
/// ```
pub fn days(text: &str) -> Option<f64> {
    const DAY: f64 = 86_400.0;
    let text = text.trim();
    // text that is not a date at all should not cost a dozen attempts
    let bytes = text.as_bytes();
    if bytes.len() < 8 {
        return None;
    }
    let seconds = |moment: NaiveDateTime| {
        let utc = moment.and_utc();
        utc.timestamp() as f64 + f64::from(utc.timestamp_subsec_nanos()) * 1e-9
    };
    if bytes[0].is_ascii_alphabetic() {
        // Mon, 25 Mar 2024 00:00:00 GMT
        let moment =
            (bytes[3] == b',').then(|| DateTime::parse_from_rfc2822(text).ok()).flatten()?;
        return Some(seconds(moment.naive_utc()) / DAY);
    }
    let basic = bytes.get(8) == Some(&b'T') && bytes[..8].iter().all(u8::is_ascii_digit);
    if !bytes[0].is_ascii_digit() || !(basic || matches!(bytes[4], b'-' | b'/')) {
        return None;
    }
    let mut text = text.replacen('/', "-", 2);
    if let Some(rest) = ["Z", "z", " UTC", " GMT"].iter().find_map(|zone| text.strip_suffix(zone)) {
        text = format!("{rest}+00:00");
    }
    // 00:00:00,123
    if text.len() > 19 && text.as_bytes()[19] == b',' {
        text.replace_range(19..20, ".");
    }
    if let Ok(date) = NaiveDate::parse_from_str(&text, "%Y-%m-%d") {
        return Some(seconds(date.and_time(NaiveTime::MIN)) / DAY);
    }
    let with_zone = [
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f%#z",
        "%Y-%m-%dT%H:%M%#z",
        "%Y-%m-%d %H:%M%#z",
        "%Y%m%dT%H%M%S%.f%#z",
        "%Y%m%dT%H%M%#z",
    ];
    for format in with_zone {
        if let Ok(moment) = DateTime::parse_from_str(&text, format) {
            return Some(seconds(moment.naive_utc()) / DAY);
        }
    }
    let moment = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
        "%Y%m%dT%H%M%S%.f",
    ]
    .into_iter()
    .find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok());
    // 2024-03-25 06
    let hour = || {
        let (date, hour) = text.split_once([' ', 'T'])?;
        let hour: u32 = hour.parse().ok().filter(|_| hour.len() == 2)?;
        NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?.and_hms_opt(hour, 0, 0)
    };
    moment.or_else(hour).map(|moment| seconds(moment) / DAY)
}

/// Returns days since 1970-01-01 as a date, or where it is not midnight as a moment in UTC, as
/// [`days`] reads it.
///
/// ```
/// use sparsegp::data::date_text;
/// assert_eq!(date_text(19782.0), "2024-02-29");
/// assert_eq!(date_text(1.5), "1970-01-02T12:00:00Z");
/// ```
pub fn date_text(days: f64) -> String {
    // to the microsecond, as much as such a number holds
    let micros = (days * 86_400e6).round();
    let moment = (micros.abs() < 9e18).then(|| DateTime::from_timestamp_micros(micros as i64));
    match moment.flatten() {
        None => days.to_string(),
        Some(moment) if micros % 86_400e6 == 0.0 => moment.format("%Y-%m-%d").to_string(),
        Some(moment) => moment.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
    }
}

/// Returns the refusal of a cell that is not a date.
pub(super) fn no_date(cell: &str) -> String {
    format!(
        "`{}` is not a date, but the column has dates; write it as `2024-12-31` or `2024-12-31T13:05:00Z`",
        cell.trim()
    )
}

/// Reads a date in a format of chrono's as days since 1970-01-01; of a year, quarter, month or week of ISO 8601 the first day.
pub(super) fn formatted(text: &str, format: &str) -> Option<f64> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, StrftimeItems::new(format)).ok()?;
    let short = |year: Option<i32>| year.is_some_and(|year| year < 1000);
    if short(parsed.year().filter(|_| format.contains("%Y"))) || short(parsed.isoyear()) {
        return None;
    }
    if parsed.isoweek().is_some() && parsed.weekday().is_none() {
        parsed.set_weekday(Weekday::Mon).ok()?;
    } else if parsed.timestamp().is_none()
        && parsed.ordinal().is_none()
        && parsed.isoweek().is_none()
    {
        if parsed.month().is_none() {
            parsed
                .set_month(parsed.quarter().map_or(1, |quarter| 3 * i64::from(quarter) - 2))
                .ok()?;
        }
        if parsed.day().is_none() {
            parsed.set_day(1).ok()?;
        }
    }
    let seconds = |moment: NaiveDateTime| {
        let utc = moment.and_utc();
        (utc.timestamp() as f64 + f64::from(utc.timestamp_subsec_nanos()) * 1e-9) / 86_400.0
    };
    if parsed.offset().is_some() {
        return parsed.to_datetime().ok().map(|moment| seconds(moment.naive_utc()));
    }
    let date: NaiveDate = parsed.to_naive_date().ok()?;
    if parsed.hour_div_12().is_none() && parsed.hour_mod_12().is_none() {
        return Some(seconds(date.and_time(NaiveTime::MIN)));
    }
    if parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }
    parsed.to_naive_time().ok().map(|time| seconds(date.and_time(time)))
}

/// Returns formats that read all of these texts, likely ones first.
pub(super) fn fitting_formats<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    const DATES: [&str; 15] = [
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%d/%m/%y",
        "%m/%d/%y",
        "%d.%m.%y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%d %b %Y",
        "%d %B %Y",
        "%d-%b-%Y",
        "%d-%b-%y",
        "%Y.%m.%d",
    ];
    // months, quarters and weeks
    const PERIODS: [&str; 16] = [
        "%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%YM%m", "%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%YQ%q",
        "%Y-Q%q", "%Y Q%q", "Q%q %Y", "Q%q-%Y", "%G-W%V", "%GW%V",
    ];
    const TIMES: [&str; 6] = ["", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M"];
    let mut left: Vec<String> = DATES
        .iter()
        .flat_map(|date| TIMES.iter().map(move |time| format!("{date}{time}")))
        .chain(PERIODS.map(str::to_owned))
        .collect();
    for text in texts {
        left.retain(|format| formatted(text.trim(), format).is_some());
        if left.is_empty() {
            break;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_moments_are_days() {
        for (text, expected) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -1.0),
            ("2000-03-01", 11_017.0),
            ("2024/02/29", 19_782.0),
            (" 2024-02-29T06:00 ", 19_782.25),
            ("2024-02-29 06:00:00", 19_782.25),
            ("2024-02-29T06:00:00Z", 19_782.25),
            ("2024-02-29T06:00:00.000000+06:00", 19_782.0),
            ("2024-02-29 00:00:00-12:00", 19_782.5),
            ("2024-02-29T06:00Z", 19_782.25),
            ("2024-02-29 06", 19_782.25),
            ("2024-02-29 06:00:00 UTC", 19_782.25),
            ("20240229T060000Z", 19_782.25),
            ("20240229T060000", 19_782.25),
            ("2024-02-29 06:00:00,000", 19_782.25),
            ("2024-02-29 06:00:00+01", 19_782.25 - 1.0 / 24.0),
            ("Thu, 29 Feb 2024 06:00:00 GMT", 19_782.25),
            ("2024-2-29", 19_782.0),
            ("1900-01-01", -25_567.0),
        ] {
            assert_eq!(days(text), Some(expected), "{text}");
        }
        let quarter = days("1970-01-01T00:00:00.25").unwrap();
        assert!((quarter - 0.25 / 86_400.0).abs() < 1e-15);
        for text in [
            "",
            "2024",
            "2024-02-30",
            "29.02.2024",
            "02/29/2024",
            "2024-13-01",
            "12:30",
            "2024-W07-1",
            "x024-01-01",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }

    #[test]
    fn dates_in_formats() {
        let last = Some(20_088.0);
        for (text, format, expected) in [
            ("31/12/2024", "%d/%m/%Y", last),
            ("12/31/2024 12:00 PM", "%m/%d/%Y %I:%M %p", last.map(|day| day + 0.5)),
            ("31.12.24", "%d.%m.%y", last),
            ("31.12.24", "%d.%m.%Y", None),
            ("Dec 31, 2024", "%b %d, %Y", last),
            ("20241231", "%Y%m%d", last),
            ("2024-12", "%Y-%m", Some(20_058.0)),
            ("2024", "%Y", Some(19_723.0)),
            ("2024-12-31 06", "%Y-%m-%d %H", last.map(|day| day + 0.25)),
            ("31/12/2024 01:00 +0100", "%d/%m/%Y %H:%M %z", last),
            ("31/13/2024", "%d/%m/%Y", None),
            ("2024Q4", "%YQ%q", Some(19_997.0)),
            ("Q2 2024", "Q%q %Y", Some(19_814.0)),
            ("2024Q5", "%YQ%q", None),
            ("2024-W01", "%G-W%V", Some(19_723.0)),
            ("2021W53", "%GW%V", None),
            ("2020W53", "%GW%V", Some(18_624.0)),
        ] {
            assert_eq!(formatted(text, format), expected, "{text}");
        }
        assert_eq!(fitting_formats(["31/12/2024", "01/02/2024"].into_iter()), ["%d/%m/%Y"]);
        assert_eq!(
            fitting_formats(["11/12/2024", "01/02/2024"].into_iter()),
            ["%d/%m/%Y", "%m/%d/%Y"]
        );
        for (texts, format) in [
            (["2024Q1", "2023Q4"], "%YQ%q"),
            (["2024-Q1", "2023-Q4"], "%Y-Q%q"),
            (["Q1 2024", "Q4 2023"], "Q%q %Y"),
            (["2024-W05", "2024-W52"], "%G-W%V"),
            (["2024M01", "2024M12"], "%YM%m"),
            (["Jan 2024", "Dec 2023"], "%b %Y"),
            (["Jan-24", "Dec-23"], "%b-%y"),
            (["01/2024", "12/2023"], "%m/%Y"),
        ] {
            assert_eq!(
                fitting_formats(texts.into_iter()).first().map(String::as_str),
                Some(format)
            );
        }
        for text in ["red", "Q1", "2024", "May", "25-34", "W05", "Jan 5", "10W40", "5-W30"] {
            assert!(fitting_formats([text].into_iter()).is_empty(), "{text}");
        }
    }
}
