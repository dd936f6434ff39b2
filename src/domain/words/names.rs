//! Configured names as people would write them, and foreign text made harmless to read.

/// Short names that are letters of a longer one.
const INITIALS: [&str; 18] = [
    "api", "cms", "crm", "dms", "edi", "erp", "hr", "iam", "oms", "pim", "pos", "psp", "sap", "sms", "sso",
    "tms", "vat", "wms",
];

/// The longest quotation within a sentence, in characters.
const LONGEST: usize = 160;

/// A destination as a sentence names it: `crm` is "the CRM", `mail-gateway` is "Mail gateway",
/// and a name with capitals of its own stays.
pub fn destination_name(name: &str) -> String {
    let text = spaced(name);
    if INITIALS.contains(&text.as_str()) {
        return format!("the {}", text.to_uppercase());
    }
    if text.chars().any(char::is_uppercase) { text } else { super::capitalised(&text) }
}

/// A step in words: `create_ticket` is "create ticket".
pub fn step_name(name: &str) -> String {
    spaced(name)
}

/// In typographic quotation marks.
pub fn quoted(text: &str) -> String {
    format!("\u{201c}{text}\u{201d}")
}

/// A whole number with its thousands apart.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn spaced(name: &str) -> String {
    one_line(&name.replace(['_', '-'], " "))
}

/// Foreign text on one line of bounded length, without what could hide or reorder other text.
pub fn one_line(text: &str) -> String {
    let visible: String = text
        .chars()
        .take(LONGEST * 4)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .filter(|letter| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'))
        .collect();
    let mut line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('\u{2026}');
    }
    line
}

/// What an error says, without the status it begins with: that stands below, with the codes.
pub(super) fn said(error: Option<&str>) -> Option<String> {
    let line = one_line(error?);
    let rest = match line.split_once(' ') {
        Some((status, rest)) if is_status(status) => rest,
        None if is_status(&line) => "",
        _ => &line,
    };
    let rest = rest.trim_matches(['.', ':', ' ']);
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn is_status(word: &str) -> bool {
    let digits = word.trim_end_matches(':');
    digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a step brings about, where its name tells.
pub(super) enum Effect {
    /// `create ticket`: the ticket.
    Made(String),
    /// `send receipt`: the receipt.
    Sent(String),
    /// Anything else.
    Unnamed,
}

impl Effect {
    pub(super) fn of(step: &str) -> Self {
        let step = spaced(step);
        match step.split_once(' ') {
            Some((verb, thing)) => match verb.to_lowercase().as_str() {
                "create" | "open" | "add" | "book" | "make" => Self::Made(thing.to_owned()),
                "send" | "mail" | "email" => Self::Sent(thing.to_owned()),
                _ => Self::Unnamed,
            },
            None => Self::Unnamed,
        }
    }

    pub(super) fn possible(&self) -> String {
        match self {
            Self::Made(thing) => format!("The {thing} may exist"),
            Self::Sent(thing) => format!("The {thing} may have gone out"),
            Self::Unnamed => "It may have happened".into(),
        }
    }

    pub(super) fn absent(&self) -> String {
        match self {
            Self::Made(thing) => format!("The {thing} does not exist there"),
            Self::Sent(thing) => format!("The {thing} did not go out"),
            Self::Unnamed => "It did not happen".into(),
        }
    }

    pub(super) fn present(&self) -> String {
        match self {
            Self::Made(thing) => format!("The {thing} exists there"),
            Self::Sent(thing) => format!("The {thing} went out"),
            Self::Unnamed => "It is done there".into(),
        }
    }
}
