//! Text for terminals. Answers of destinations are other people's: what could move the cursor,
//! change colours or reorder other text never reaches the screen.

use std::fmt::Write as _;
use std::io::{self, Write as _};

/// The widest line of a table, in characters.
pub(super) const WIDTH: usize = 100;

/// Writes to stdout. A reader that has left, as `head` does, is no failure.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// JSON, indented, with a line's end.
pub(super) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// One line without control characters and without what hides or reorders text.
pub(super) fn clean(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .filter(|letter| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'))
        .collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, in at most `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    // A whole answer need not be cleaned to show its first words.
    let head: String = text.chars().take(width.saturating_mul(8)).collect();
    let line = clean(&head);
    if line.chars().count() <= width && head.len() == text.len() {
        return line;
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short
}

/// "1 step", "2 steps".
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Columns two spaces apart, each as wide as its widest cell; the last one is cut at [`WIDTH`].
pub(super) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in std::iter::once(&header.map(str::to_owned)).chain(rows) {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            if index + 1 == N {
                let left = WIDTH.saturating_sub(line.chars().count());
                line.push_str(&cut(cell, left));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A text broken into lines of at most [`WIDTH`] characters, each behind `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    let mut length = indent.chars().count();
    for word in text.split_whitespace() {
        let wide = word.chars().count();
        if length > indent.chars().count() {
            if length + 1 + wide > WIDTH {
                lines.push_str(&line);
                lines.push('\n');
                indent.clone_into(&mut line);
                length = indent.chars().count();
            } else {
                line.push(' ');
                length += 1;
            }
        }
        line.push_str(word);
        length += wide;
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_drive_a_terminal() {
        let hostile = "a\u{1b}[31mred\u{1b}[2J\u{202e}b\u{7}\nc\u{9b}1m\0";
        let line = clean(hostile);
        assert!(line.chars().all(|letter| !letter.is_control()), "{line:?}");
        assert!(!line.contains('\u{202e}'));
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn a_table_fits() {
        let rows = [["x".repeat(36), "y".repeat(300)]];
        let text = table(["KEY", "ERROR"], &rows);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut(&"long".repeat(9), 5), "long\u{2026}");
    }

    #[test]
    fn words_are_wrapped() {
        let text = wrapped(&"word ".repeat(50), "  ");
        assert!(text.lines().all(|line| line.starts_with("  word") && line.chars().count() <= WIDTH));
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
