//! The data set: `airports.csv` of the PyPI package `airportsdata`, a row for each airport.

use crate::error::Error;
use std::io::Read;
use std::path::Path;

/// The column that becomes the key.
const KEY: &str = "icao";
/// Columns that hold numbers; everything else is text, also where it looks like a number.
const NUMBERS: [&str; 3] = ["elevation", "lat", "lon"];

/// One entry of the store.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The airport's ICAO code.
    pub key: String,
    /// The whole row as a JSON object, its fields in the order of the columns.
    pub value: String,
}

/// Reads the file at `path`.
///
/// # Errors
/// When it cannot be read or is no CSV with a column `icao`.
pub fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let data = |message: String| Error::Data { path: path.to_owned(), message };
    let file = std::fs::File::open(path).map_err(|e| data(e.to_string()))?;
    let entries = parse(file).map_err(data)?;
    if entries.is_empty() { Err(data("there are no rows in it".into())) } else { Ok(entries) }
}

fn parse(csv: impl Read) -> Result<Vec<Entry>, String> {
    let mut reader = csv::Reader::from_reader(csv);
    let columns = reader.headers().map_err(|e| e.to_string())?.clone();
    let key = columns.iter().position(|name| name == KEY).ok_or(format!("there is no column '{KEY}'"))?;
    let rows = reader.records().map(|row| {
        let row = row.map_err(|e| e.to_string())?;
        let fields = columns.iter().zip(&row).map(|(name, cell)| format!("{}:{}", quoted(name), field(name, cell)));
        let value = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        Ok(Entry { key: row.get(key).unwrap_or_default().to_owned(), value })
    });
    rows.collect()
}

/// A cell as JSON. Numbers keep their digits.
fn field(column: &str, cell: &str) -> String {
    let is_number = NUMBERS.contains(&column) && serde_json::from_str::<serde_json::Number>(cell).is_ok();
    if is_number { cell.to_owned() } else { quoted(cell) }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_json_with_their_numbers_unchanged() {
        let csv = "\"icao\",\"name\",\"elevation\",\"lat\",\"lid\"\n\
            \"LSZH\",\"Zürich \"\"Kloten\"\", main\",1416,47.46470,\"007\"\n\
            \"XXXX\",\"\",n/a,-0.5,\"\"\n";
        let entries = parse(csv.as_bytes()).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].key, "LSZH");
        assert_eq!(
            entries[0].value,
            r#"{"icao":"LSZH","name":"Zürich \"Kloten\", main","elevation":1416,"lat":47.46470,"lid":"007"}"#
        );
        assert_eq!(entries[1].value, r#"{"icao":"XXXX","name":"","elevation":"n/a","lat":-0.5,"lid":""}"#);
    }

    #[test]
    fn a_file_of_another_shape_is_refused() {
        assert_eq!(parse("code,name\nA,B\n".as_bytes()).unwrap_err(), "there is no column 'icao'");
        let message = parse("icao,name\nA\n".as_bytes()).unwrap_err();
        assert!(message.contains("line: 2"), "{message}");
    }
}
