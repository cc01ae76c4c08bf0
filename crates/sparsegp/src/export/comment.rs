//! Texts and numbers that stand in sources of C, whatever is in them.

/// Characters of a line of a comment.
const WIDTH: usize = 110;

/// Returns a text that stays within a comment and on its line: control characters and directions of
/// writing are escaped, and so is what ends or begins comments or is a trigraph.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let last = out.chars().last();
        match c {
            // `*/`, `/*`, trigraphs
            '/' if last == Some('*') => out.push_str(" /"),
            '*' if last == Some('/') => out.push_str(" *"),
            '?' if last == Some('?') => out.push_str(" ?"),
            '\\' => out.push_str("\\\\"),
            c if c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric() => out.push(c),
            c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    out
}

/// Returns a comment of these lines, wrapped.
pub(super) fn block(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut rest = String::new();
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        for word in line.split_whitespace() {
            if !rest.trim().is_empty() && rest.chars().count() + word.chars().count() > WIDTH {
                text.push_str(&format!(" * {}\n", rest.trim_end()));
                rest = format!("{indent}  ");
            } else if rest.is_empty() {
                rest.push_str(&indent);
            }
            rest.push_str(word);
            rest.push(' ');
        }
        text.push_str(format!(" * {rest}").trim_end());
        text.push('\n');
    }
    let start = text.strip_prefix(" *").unwrap_or(&text);
    format!("/*{start} */\n")
}

/// Returns a number as C reads it back to the bit: at most 17 digits.
pub(super) fn literal(value: f64) -> String {
    match value {
        v if v.is_nan() => "NAN".into(),
        f64::INFINITY => "INFINITY".into(),
        f64::NEG_INFINITY => "(-INFINITY)".into(),
        v => {
            let own = match v.abs() {
                0.0 => "0.0".into(),
                a if (1e-4..1e16).contains(&a) => format!("{v:?}"),
                _ => format!("{v:e}"),
            };
            if v < 0.0 { format!("({own})") } else { own }
        }
    }
}

/// Returns whether a text is a name of C that no keyword and no macro of its standard headers has.
pub(super) fn is_name(text: &str) -> bool {
    const TAKEN: [&str; 44] = [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "class",
        "namespace",
        "template",
        "private",
        "public",
        "new",
        "delete",
        "this",
        "try",
        "throw",
    ];
    let mut all = text.chars();
    all.next().is_some_and(|c| c.is_ascii_alphabetic())
        && all.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text.len() <= 40
        && !TAKEN.contains(&text)
}

/// Returns a name of C that is like a text, such as the name of a file.
pub fn name_like(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = text.chars().map(plain).take(40).collect();
    if !is_name(&name) {
        name = format!("model_{}", name.chars().take(30).collect::<String>());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_stay_within_their_line_of_a_comment() {
        let hostile = "a*/ int x; /* \n b \\\n ??/ \u{202e}größe";
        let own = escaped(hostile);
        assert!(
            !own.contains("*/")
                && !own.contains("/*")
                && !own.contains('\n')
                && !own.contains("??")
        );
        assert!(own.contains("größe") && own.contains("\\u{202e}") && own.contains("\\u{a}"));
        let comment = block(&[own, "**/".replace("*/", "* /")]);
        assert_eq!(comment.matches("*/").count(), 1);
        assert!(comment.ends_with(" */\n"));
        // at either side of a wrapped line too
        assert!(!escaped("***/").contains("*/") && !escaped("//**").contains("/*"));
    }

    #[test]
    fn numbers_come_back_to_the_bit() {
        for value in
            [0.1, -2.5e-300, 5e-324, 1e22, 123456.0, f64::MAX, 0.30000000000000004, -0.0, 1e16]
        {
            let text = literal(value);
            let plain = text.trim_matches(['(', ')']);
            let back: f64 = plain.parse().unwrap();
            assert!(back == value && plain.contains(['.', 'e']), "{text}");
        }
        assert_eq!(literal(f64::NEG_INFINITY), "(-INFINITY)");
    }

    #[test]
    fn names_are_those_of_c() {
        assert!(
            is_name("sales_2024")
                && !is_name("2024")
                && !is_name("for")
                && !is_name("größe")
                && !is_name("")
        );
        assert_eq!(name_like("my model-2"), "my_model_2");
        assert_eq!(name_like("2024"), "model_2024");
        assert_eq!(name_like("int"), "model_int");
    }
}
