//! Around every list: its filters, what is set of them, and the way to the next page.

/// One value of a `<select>` or a group of radio buttons.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is read.
    pub words: String,
    /// It is the present one.
    pub chosen: bool,
}

/// A filter with a fixed set of values. The first choice has an empty value and means "any".
#[derive(Clone, Debug)]
pub struct Select {
    /// The name in the query string.
    pub name: &'static str,
    /// The label.
    pub label: &'static str,
    /// In order.
    pub choices: Vec<Choice>,
}

/// A filter that is set, and the way to drop it.
#[derive(Clone, Debug)]
pub struct Chip {
    /// "Destination".
    pub name: String,
    /// "crm".
    pub value: String,
    /// The same list without this filter.
    pub without: String,
}

/// The way to the neighbouring pages of a list.
#[derive(Clone, Debug, Default)]
pub struct Pager {
    /// The page with newer rows.
    pub newer: Option<String>,
    /// The page with older rows.
    pub older: Option<String>,
    /// "50 shown, newest first".
    pub shown: String,
}
