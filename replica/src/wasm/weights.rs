//! The IC's prices: of Wasm operators and of calls of the system API, in instructions.

use std::collections::HashMap;
use std::sync::OnceLock;
use wasmparser::Operator;

const OPERATORS: &str = include_str!("../../data/instruction-weights.tsv");
const SYSTEM_API: &str = include_str!("../../data/system-api-costs.tsv");

/// What one call of an `ic0` function costs beside the weight of the Wasm `call`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiCost {
    /// Instructions of every call.
    pub fixed: u64,
    /// Instructions for each byte that is copied.
    pub per_byte: u64,
    /// Instructions for each 4 KiB page of stable memory that the message writes for the first time.
    pub dirty_page: u64,
}

/// Rows of a table: tab-separated, `#` starts a comment, the first row names the columns.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).skip(1).map(|l| l.split('\t').collect())
}

fn number(cell: Option<&&str>) -> u64 {
    cell.and_then(|c| c.trim().parse().ok()).unwrap_or(0)
}

fn operators() -> &'static HashMap<&'static str, u64> {
    static TABLE: OnceLock<HashMap<&'static str, u64>> = OnceLock::new();
    TABLE.get_or_init(|| rows(OPERATORS).map(|r| (r[0], number(r.get(1)))).collect())
}

/// The price of `ic0.<function>`; nothing for a function that the table does not hold.
pub(crate) fn api_cost(function: &str) -> ApiCost {
    static TABLE: OnceLock<HashMap<&'static str, ApiCost>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        rows(SYSTEM_API)
            .map(|r| {
                let cost =
                    ApiCost { fixed: number(r.get(1)), per_byte: number(r.get(2)), dirty_page: number(r.get(3)) };
                (r[0], cost)
            })
            .collect()
    });
    table.get(function).copied().unwrap_or_default()
}

macro_rules! operator_names {
    ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*) )*) => {
        /// The operator's name as the table spells it.
        fn operator_name(operator: &Operator<'_>) -> &'static str {
            match operator {
                $( Operator::$op { .. } => stringify!($op), )*
                _ => "",
            }
        }

        #[cfg(test)]
        const ALL_NAMES: &[&str] = &[$( stringify!($op), )*];
    };
}
wasmparser::for_each_operator!(operator_names);

/// Weight of an operator in instructions. What the table does not list weighs 1.
pub(super) fn operator_weight(operator: &Operator<'_>) -> u64 {
    operators().get(operator_name(operator)).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_an_operator_and_holds_a_number() {
        let table: Vec<_> = rows(OPERATORS).collect();
        assert!(table.len() > 400, "{} rows", table.len());
        for row in table {
            assert!(ALL_NAMES.contains(&row[0]), "unknown operator {}", row[0]);
            assert!(row[1].parse::<u64>().is_ok(), "{row:?}");
        }
    }

    #[test]
    fn prices_are_read_from_the_right_columns() {
        assert_eq!(api_cost("stable64_write"), ApiCost { fixed: 20, per_byte: 1, dirty_page: 1000 });
        assert_eq!(api_cost("msg_reply_data_append"), ApiCost { fixed: 500, per_byte: 50, dirty_page: 0 });
        assert_eq!(operator_weight(&Operator::I32DivU), 10);
        assert_eq!(operator_weight(&Operator::Call { function_index: 0 }), 5);
        assert_eq!(operator_weight(&Operator::LocalGet { local_index: 0 }), 1);
        assert_eq!(operator_weight(&Operator::End), 0);
    }
}
