//! SQL texts, and which of them are kept prepared.
use std::sync::atomic::{AtomicU32, Ordering};

/// A statement that is prepared at its first use (or by [`Database::keep`](crate::Database::keep)) and then kept as
/// long as the database is open.
///
/// ```
/// use icsql_engine::Sql;
/// static COUNT: Sql = Sql::new("SELECT count(*) FROM main.kv");
/// ```
#[derive(Debug)]
pub struct Sql {
    text: &'static str,
    /// Place in every database's list of kept statements, counted from 1; 0 before the first use.
    slot: AtomicU32,
}

static SLOTS: AtomicU32 = AtomicU32::new(0);

impl Sql {
    /// One statement. Tables should be named with their schema, as in `main.kv`.
    pub const fn new(text: &'static str) -> Self {
        Self { text, slot: AtomicU32::new(0) }
    }

    /// The text.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// Its place in a list of kept statements.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        match self.slot.load(Ordering::Relaxed) {
            0 => self.assign_slot(),
            slot => slot as usize - 1,
        }
    }

    #[cold]
    fn assign_slot(&self) -> usize {
        let new = SLOTS.fetch_add(1, Ordering::Relaxed) + 1;
        match self.slot.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => new as usize - 1,
            // Another thread was first; the number drawn here stays unused.
            Err(slot) => slot as usize - 1,
        }
    }
}

/// A statement to run: one that is kept, or a text, which is prepared unless it is among those used most recently.
#[derive(Debug, Clone, Copy)]
pub enum SqlText<'a> {
    /// Kept.
    Kept(&'static Sql),
    /// Any text.
    Text(&'a str),
}

impl SqlText<'_> {
    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Kept(sql) => sql.text,
            Self::Text(text) => text,
        }
    }
}

impl From<&'static Sql> for SqlText<'_> {
    fn from(sql: &'static Sql) -> Self {
        Self::Kept(sql)
    }
}

impl<'a> From<&'a str> for SqlText<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for SqlText<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

/// Whether nothing but white space, comments and semicolons is left.
pub(super) fn is_blank(mut rest: &str) -> bool {
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        if rest.is_empty() {
            return true;
        } else if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_blank;

    #[test]
    fn only_space_and_comments_are_blank() {
        for blank in ["", " ;\n\t;", "-- x", "-- x\n; /* y */ ", "/* open", "/**/--"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for statement in ["SELECT 1", "; x", "-- x\nSELECT 1", "/* y */ z", "-", "/"] {
            assert!(!is_blank(statement), "{statement:?}");
        }
    }
}
