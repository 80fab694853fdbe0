//! The data set: `airports.csv` of the PyPI package `airportsdata`, a row for each airport.

use crate::error::Error;
use icsql_types::Value;
use std::io::Read;
use std::path::Path;

/// The column that becomes the key.
const KEY: &str = "icao";
/// Columns that hold numbers; everything else is text, also where it looks like a number.
const NUMBERS: [&str; 3] = ["elevation", "lat", "lon"];

/// The columns that become those of a table, in the order of [`Airport::row`].
const COLUMNS: [&str; 11] = ["icao", "iata", "name", "city", "subd", "country", "elevation", "lat", "lon", "tz", "lid"];

/// One airport.
#[derive(Debug, PartialEq)]
pub struct Airport {
    /// Its ICAO code.
    pub key: String,
    /// The whole row as a JSON object, its fields in the order of the columns.
    pub value: String,
    /// The row as values of SQL, in the order of [`COLUMNS`]. An empty cell is NULL.
    pub row: Vec<Value>,
}

/// Reads the file at `path`.
///
/// # Errors
/// When it cannot be read or is no CSV with these columns.
pub fn read(path: &Path) -> Result<Vec<Airport>, Error> {
    let data = |message: String| Error::Data { path: path.to_owned(), message };
    let file = std::fs::File::open(path).map_err(|e| data(e.to_string()))?;
    let airports = parse(file).map_err(data)?;
    if airports.is_empty() { Err(data("there are no rows in it".into())) } else { Ok(airports) }
}

fn parse(csv: impl Read) -> Result<Vec<Airport>, String> {
    let mut reader = csv::Reader::from_reader(csv);
    let columns = reader.headers().map_err(|e| e.to_string())?.clone();
    let place =
        |wanted: &str| columns.iter().position(|name| name == wanted).ok_or(format!("there is no column '{wanted}'"));
    let key = place(KEY)?;
    let places = COLUMNS.iter().map(|name| place(name)).collect::<Result<Vec<_>, _>>()?;
    let rows = reader.records().map(|cells| {
        let cells = cells.map_err(|e| e.to_string())?;
        let fields = columns.iter().zip(&cells).map(|(name, cell)| format!("{}:{}", quoted(name), field(name, cell)));
        let value = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        let cell = |place: usize| cells.get(place).unwrap_or_default();
        let row = COLUMNS.iter().zip(&places).map(|(name, &place)| sql_value(name, cell(place))).collect();
        Ok(Airport { key: cell(key).to_owned(), value, row })
    });
    rows.collect()
}

/// A cell as a value of SQL.
fn sql_value(column: &str, cell: &str) -> Value {
    match cell.parse() {
        Ok(number) if NUMBERS.contains(&column) => Value::Real(number),
        _ if cell.is_empty() => Value::Null,
        _ => Value::Text(cell.to_owned()),
    }
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

    const HEADER: &str = "icao,iata,name,city,subd,country,elevation,lat,lon,tz,lid\n";

    #[test]
    fn rows_become_json_with_their_numbers_unchanged() {
        let csv = format!(
            "{HEADER}LSZH,ZRH,\"Zürich \"\"Kloten\"\", main\",,,CH,1416,47.46470,8.5,Europe/Zurich,007\n\
             XXXX,,,,,CH,n/a,-0.5,0,,\n"
        );
        let airports = parse(csv.as_bytes()).unwrap();
        assert_eq!(airports.len(), 2);
        assert_eq!(airports[0].key, "LSZH");
        assert_eq!(
            airports[0].value,
            r#"{"icao":"LSZH","iata":"ZRH","name":"Zürich \"Kloten\", main","city":"","subd":"","country":"CH","elevation":1416,"lat":47.46470,"lon":8.5,"tz":"Europe/Zurich","lid":"007"}"#
        );
        assert!(airports[1].value.contains(r#""elevation":"n/a","lat":-0.5,"lon":0,"tz":"""#), "{}", airports[1].value);
    }

    #[test]
    fn rows_become_values_of_sql() {
        let csv = format!("{HEADER}LSZH,ZRH,Zürich,,,CH,1416,47.46470,8.5,Europe/Zurich,007\n");
        let text = |text: &str| Value::Text(text.to_owned());
        let row = [
            text("LSZH"),
            text("ZRH"),
            text("Zürich"),
            Value::Null,
            Value::Null,
            text("CH"),
            Value::Real(1416.0),
            Value::Real(47.4647),
            Value::Real(8.5),
            text("Europe/Zurich"),
            text("007"),
        ];
        assert_eq!(parse(csv.as_bytes()).unwrap()[0].row, row);
    }

    #[test]
    fn a_file_of_another_shape_is_refused() {
        assert_eq!(parse("code,name\nA,B\n".as_bytes()).unwrap_err(), "there is no column 'icao'");
        assert_eq!(parse("icao,name\nA,B\n".as_bytes()).unwrap_err(), "there is no column 'iata'");
        let message = parse(format!("{HEADER}A\n").as_bytes()).unwrap_err();
        assert!(message.contains("line: 2"), "{message}");
    }
}
