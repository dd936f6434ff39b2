//! What is wrong with a configuration, in words that say where and what to write.

use std::fmt;

/// One thing to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file as it was named on the command line; absent when the mistake is not in it.
    pub file: Option<String>,
    /// From 1; absent when the mistake belongs to no line.
    pub line: Option<usize>,
    /// Dotted, as in `destinations.crm.timeout`, or a variable of the environment.
    pub key: String,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

/// Everything that is wrong with a configuration, in the order of its lines. Displays as one
/// line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Never empty.
    pub mistakes: Vec<Mistake>,
}

impl ConfigError {
    /// A mistake about the file as a whole.
    pub(super) fn whole(problem: String) -> Self {
        Self { mistakes: vec![Mistake { file: None, line: None, key: String::new(), problem }] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
