//! Statements that are nested, chained or long: they work up to a limit and are refused above it.
use crate::{code, int, text, without_a_trace};
use icsql_replica::ErrorCode;
use icsql_tests::Local;
use icsql_tests::local::statement;
use icsql_types::method::{Mode, SQL_BATCH, SQL_EXPLAIN, SQL_QUERY, SQL_SCHEMA};
use icsql_types::{Answer, Error, ReadOptions, RowSet, Value};

const SQLITE_ERROR: i32 = 1;

fn wrapped(n: usize, before: &str, inside: &str, after: &str) -> String {
    format!("SELECT {}{inside}{}", before.repeat(n), after.repeat(n))
}

fn joined(n: usize, one: &str, between: &str) -> String {
    vec![one; n].join(between)
}

/// What can be made of any size, the largest size that works, and one that is refused. In between, if there is room, either is
/// fine, but above one that was refused nothing works.
type Case = (&'static str, fn(usize) -> String, usize, usize);

const CASES: &[Case] = &[
    // The limits that docs/limits.md has.
    ("a sum", |n| format!("SELECT {}", joined(n, "1", " + ")), 200, 201),
    ("AND", |n| format!("SELECT {} FROM t", joined(n, "x = 1", " AND ")), 199, 200),
    ("NOT", |n| wrapped(n, "NOT ", "1", ""), 199, 200),
    ("functions", |n| wrapped(n, "abs(", "1", ")"), 199, 200),
    ("CASE", |n| wrapped(n, "CASE x WHEN 2 THEN 3 ELSE ", "1", " END") + " FROM t", 199, 200),
    ("CAST and COLLATE", |n| wrapped(n, "CAST(", "'a'", " COLLATE NOCASE AS TEXT)"), 99, 100),
    ("UNION ALL", |n| joined(n, "SELECT 1", " UNION ALL "), 500, 501),
    ("UNION", |n| joined(n, "SELECT 1", " UNION "), 500, 501),
    ("EXCEPT", |n| joined(n, "SELECT x FROM t", " EXCEPT "), 500, 501),
    ("INTERSECT with an order", |n| joined(n, "SELECT x FROM t", " INTERSECT ") + " ORDER BY 1", 500, 501),
    ("columns of a result", |n| format!("SELECT {} FROM t", joined(n, "x", ", ")), 500, 501),
    ("terms of an order", |n| format!("SELECT x FROM t ORDER BY {}", joined(n, "x", ", ")), 500, 501),
    ("terms of a group", |n| format!("SELECT 1 FROM t GROUP BY {}", joined(n, "x", ", ")), 500, 501),
    ("tables of a join", |n| format!("SELECT count(*) FROM {}", joined(n, "one", ", ")), 64, 65),
    (
        "outer joins",
        |n| {
            format!(
                "SELECT count(*) FROM one a1{}",
                chained(2, n, |level, below| { format!(" LEFT JOIN t a{level} ON a{level}.x = a{below}.x") })
            )
        },
        64,
        65,
    ),
    ("arguments of a function", |n| format!("SELECT max({})", joined(n, "1", ", ")), 100, 101),
    ("a pattern of LIKE", |n| format!("SELECT 'a' LIKE '{}'", "%".repeat(n)), 1_000, 1_001),
    ("wildcards of GLOB", |n| format!("SELECT printf('%050000d', 1) GLOB '{}*'", "*0".repeat(n / 2)), 999, 1_000),
    ("rows of VALUES", |n| format!("SELECT count(*) FROM (VALUES {})", joined(n, "(1)", ", ")), 150_000, 200_000),
    // Others of SQLite.
    ("parentheses", |n| wrapped(n, "(", "1", ")"), 2_000, 2_501),
    ("subqueries of FROM", |n| wrapped(n, "x FROM (SELECT ", "x FROM t", ")"), 400, 420),
    ("subqueries with LIMIT", |n| wrapped(n, "max(x) AS x FROM (SELECT ", "x FROM t", " LIMIT 5)"), 400, 420),
    ("subqueries of an expression", |n| wrapped(n, "(SELECT ", "1", ")"), 18, 19),
    ("EXISTS", |n| wrapped(n, "EXISTS (SELECT 1 FROM t WHERE x > 0 AND ", "1", ")"), 12, 13),
    ("IN", |n| wrapped(n, "1 IN (SELECT ", "1", ")"), 18, 19),
    (
        "correlated subqueries",
        |n| {
            let nested = |level, _| format!("(SELECT max(a{level}.x) FROM t a{level} WHERE a{level}.x >= ");
            format!("SELECT {}0{}", chained(1, n, nested), ")".repeat(n))
        },
        12,
        13,
    ),
    (
        "common tables on one another",
        |n| {
            let table = |level, below| format!(", c{level} AS (SELECT x FROM c{below})");
            format!("WITH c0 AS (SELECT x FROM t){} SELECT * FROM c{n}", chained(1, n, table))
        },
        198,
        199,
    ),
    (
        "common tables that double",
        |n| {
            let table = |level, below| format!(", c{level} AS (SELECT a.x FROM c{below} a, c{below} b)");
            format!("WITH c0 AS (SELECT x FROM one){} SELECT count(*) FROM c{n}", chained(1, n, table))
        },
        5,
        8,
    ),
    (
        "joins in parentheses",
        |n| format!("SELECT count(*) FROM {}one{}", "(".repeat(n), " CROSS JOIN one)".repeat(n)),
        63,
        64,
    ),
    ("arrays of JSON", |n| format!("SELECT json('{}{}')", "[".repeat(n), "]".repeat(n)), 1_000, 1_001),
    ("objects of JSON", |n| format!("SELECT jsonb('{}1{}')", "{\"a\":".repeat(n), "}".repeat(n)), 1_000, 1_001),
    ("a path of JSON", |n| format!("SELECT json_extract('[]', '${}')", "[0]".repeat(n)), 300_000, 400_000),
    (
        "patches of JSON",
        |n| {
            let nested = format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
            format!("SELECT json_patch('{nested}', '{nested}')")
        },
        1_000,
        1_001,
    ),
    ("full-text parentheses", |n| format!("SELECT count(*) FROM page('{}a{}')", "(".repeat(n), ")".repeat(n)), 90, 100),
    ("full-text NOT", |n| format!("SELECT count(*) FROM page('{}')", joined(n, "a", " NOT ")), 257, 258),
    ("a format of many parts", |n| format!("SELECT length(printf('{}'))", "%d".repeat(n)), 400_000, 600_000),
    (
        "window functions",
        |n| {
            let window = |place, _| format!("sum(x) OVER (ORDER BY x + {place}), ");
            format!("SELECT {} 1 FROM t", chained(1, n, window))
        },
        100,
        110,
    ),
];

/// `of` each number with the one before it, from `first` to `last`.
fn chained(first: usize, last: usize, of: impl Fn(usize, usize) -> String) -> String {
    (first..=last).map(|level| of(level, level - 1)).collect()
}

fn with_tables() -> Local {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE t(x INTEGER PRIMARY KEY)");
    canister.run("INSERT INTO t VALUES (1), (2)");
    canister.run("CREATE TABLE one AS SELECT 1 AS x");
    canister.run("CREATE VIRTUAL TABLE page USING fts5(body)");
    canister.run("INSERT INTO page VALUES ('a b c')");
    canister
}

/// Whether it was answered. A refusal is one by SQLite, or by the limit of a statement's length; all else fails the test.
fn works(name: &str, n: usize, answer: &Answer<Vec<Vec<Value>>>) -> bool {
    let refused = match answer {
        Ok(_) => return true,
        Err(Error::Sqlite { code, .. }) => *code == SQLITE_ERROR,
        Err(Error::TooLarge { what, .. }) => what == "sql",
        Err(_) => false,
    };
    assert!(refused, "{name}, {n}: {answer:?}");
    false
}

#[test]
fn reads_work_up_to_their_limits() {
    let mut canister = with_tables();
    for (name, sql, largest, refused) in CASES {
        let mut sizes = vec![largest / 2, largest - 1, *largest, *refused, refused + 1];
        // Somewhere in between, and far above as far as a message goes.
        sizes.extend([1, 2, 3].map(|quarter| largest + (refused - largest) * quarter / 4));
        sizes.extend([2 * refused, 10 * refused].into_iter().filter(|n| sql(*n).len() < 2_000_000));
        sizes.sort_unstable();
        sizes.dedup();
        let mut refused_at = None;
        for n in sizes {
            let works = works(name, n, &canister.rows(&sql(n)));
            assert!(works || n > *largest, "{name}: {n} is refused");
            assert!(!works || n < *refused, "{name}: {n} works");
            if works {
                assert_eq!(refused_at, None, "{name}: {n} works");
            } else {
                refused_at.get_or_insert(n);
            }
        }
    }
    assert_eq!(canister.rows("SELECT x FROM t"), Ok(vec![vec![int(1)], vec![int(2)]]));
}

#[test]
fn the_same_as_a_plan_and_inside_an_update() {
    let mut canister = with_tables();
    for (name, sql, largest, refused) in CASES {
        for n in [*largest, *refused] {
            let sql = sql(n);
            let explained = canister.answer(&SQL_EXPLAIN, (statement(&sql),));
            let executed = without_a_trace(&mut canister, |canister| canister.execute(&sql));
            if n == *largest {
                assert!(executed.is_ok(), "{name}, {n}: {executed:?}");
                // The plan of a compound indents each term below the one before it.
                let large = matches!(&explained, Err(Error::TooLarge { what, .. }) if what == "reply");
                assert!(explained.is_ok() || large, "{name}, {n}: {explained:?}");
            } else {
                assert!(executed.is_err(), "{name}, {n}");
            }
        }
    }
}

#[test]
fn views_on_views() {
    let mut canister = with_tables();
    let views = (1..=400).map(|n| {
        let below = if n == 1 { "t".to_owned() } else { format!("v{}", n - 1) };
        format!("CREATE VIEW v{n} AS SELECT x FROM {below} WHERE x < 1000 + {n}")
    });
    let views: Vec<_> = views.map(|sql| statement(&sql)).collect();
    canister.call(&SQL_BATCH, (views, None));
    let (mut worked, mut refused) = (0, 0);
    for n in [1, 50, 100, 150, 190, 198, 199, 200, 201, 202, 300, 400] {
        if works("views", n, &canister.rows(&format!("SELECT max(x) FROM v{n}"))) {
            assert!(refused == 0, "v{n} works and v{refused} does not");
            worked = n;
        } else {
            refused = n;
        }
    }
    assert!((150..=200).contains(&worked), "the deepest view that works is {worked}");
    let refused = canister.execute("CREATE TABLE copy AS SELECT * FROM v400");
    assert_eq!(code(&refused), SQLITE_ERROR, "{refused:?}");
    // What describes them all looks into each of them down to the table.
    let described = canister.answer(&SQL_SCHEMA, ());
    let stopped = |error: &Error| matches!(error, Error::BudgetExceeded { .. });
    assert!(described.as_ref().map_or_else(stopped, |schema| schema.tables.len() == 403), "{described:?}");
    canister.run("DROP VIEW v200");
    assert_eq!(code(&canister.rows("SELECT * FROM v201")), SQLITE_ERROR);
    // In a circle.
    canister.run("CREATE VIEW v200 AS SELECT * FROM v300");
    let circular = canister.rows("SELECT * FROM v200");
    assert_eq!(code(&circular), SQLITE_ERROR, "{circular:?}");
    canister.upgrade();
    assert_eq!(canister.rows("SELECT max(x) FROM v100"), Ok(vec![vec![int(2)]]));
}

#[test]
fn triggers_that_fire_triggers() {
    let mut canister = Local::deploy();
    let mut schema = vec!["CREATE TABLE t0(x)".to_owned()];
    for n in 1..=120 {
        schema.push(format!("CREATE TABLE t{n}(x)"));
        schema.push(format!(
            "CREATE TRIGGER f{n} AFTER INSERT ON t{} BEGIN INSERT INTO t{n} VALUES (new.x + 1); END",
            n - 1
        ));
    }
    let schema: Vec<_> = schema.iter().map(|sql| statement(sql)).collect();
    canister.call(&SQL_BATCH, (schema, None));
    // From t70 on there are 50 triggers to t120, from t69 on 51.
    canister.run("INSERT INTO t71 VALUES (0)");
    canister.run("INSERT INTO t70 VALUES (0)");
    assert_eq!(canister.rows("SELECT sum(x) FROM t120"), Ok(vec![vec![int(49 + 50)]]));
    for from in [69, 60, 0] {
        let refused =
            without_a_trace(&mut canister, |canister| canister.execute(&format!("INSERT INTO t{from} VALUES (0)")));
        assert_eq!(code(&refused), SQLITE_ERROR, "{refused:?}");
    }
    // One that fires itself does so once, since recursive triggers are off.
    canister.run("CREATE TABLE again(x)");
    canister.run("CREATE TRIGGER once AFTER INSERT ON again BEGIN INSERT INTO again VALUES (new.x + 1); END");
    canister.run("INSERT INTO again VALUES (1)");
    assert_eq!(canister.rows("SELECT x FROM again"), Ok(vec![vec![int(1)], vec![int(2)]]));
    // So do two that fire each other.
    canister.run("CREATE TABLE ping(x)");
    canister.run("CREATE TABLE pong(x)");
    canister.run("CREATE TRIGGER ping_pong AFTER INSERT ON ping BEGIN INSERT INTO pong VALUES (new.x + 1); END");
    canister.run("CREATE TRIGGER pong_ping AFTER INSERT ON pong BEGIN INSERT INTO ping VALUES (new.x + 1); END");
    canister.run("INSERT INTO ping VALUES (1)");
    let sums = canister.rows("SELECT (SELECT group_concat(x) FROM ping), (SELECT group_concat(x) FROM pong)");
    assert_eq!(sums, Ok(vec![vec![text("1,3"), text("2")]]));
}

#[test]
fn foreign_keys_that_cascade() {
    let mut canister = Local::deploy();
    canister.run("CREATE TABLE person(id INTEGER PRIMARY KEY, parent INT REFERENCES person ON DELETE CASCADE)");
    let family = |first: u32, generations: u32| {
        format!(
            "WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n LIMIT {generations})
             INSERT INTO person SELECT i, iif(i = {first}, NULL, i - 1) FROM n"
        )
    };
    canister.run(&family(1, 40));
    assert_eq!(canister.run("DELETE FROM person WHERE id = 1").changes, 1);
    assert_eq!(canister.rows("SELECT count(*) FROM person"), Ok(vec![vec![int(0)]]));
    canister.run(&family(1, 1_000));
    let refused = without_a_trace(&mut canister, |canister| canister.execute("DELETE FROM person WHERE id = 1"));
    assert_eq!(code(&refused), SQLITE_ERROR, "{refused:?}");
    assert_eq!(canister.rows("SELECT count(*) FROM person"), Ok(vec![vec![int(1_000)]]));
    // From the last to the first it goes, as does a list that is short enough.
    canister.run("DELETE FROM person WHERE id > 970");
    canister.run("DELETE FROM person WHERE id > 940");
    assert_eq!(canister.rows("SELECT max(id) FROM person"), Ok(vec![vec![int(940)]]));
}

#[test]
fn a_full_text_table_of_many_tokenizers() {
    let mut canister = Local::deploy();
    let create = |n: usize| {
        format!("CREATE VIRTUAL TABLE page{n} USING fts5(body, tokenize = '{}unicode61')", "porter ".repeat(n))
    };
    for n in [0, 1, 3, 50] {
        canister.run(&create(n));
        canister.run(&format!("INSERT INTO page{n} VALUES ('freezing lakes')"));
        let found = canister.rows(&format!("SELECT body FROM page{n}('lake OR lakes')"));
        assert_eq!(found, Ok(vec![vec![text("freezing lakes")]]));
    }
    for n in [1_000, 10_000, 100_000] {
        let before = canister.checksum();
        if canister.execute(&create(n)).is_err() {
            assert_eq!(canister.checksum(), before);
        }
    }
    assert_eq!(canister.rows("SELECT count(*) FROM page1"), Ok(vec![vec![int(1)]]));
}

#[test]
fn wide_tables() {
    let mut canister = Local::deploy();
    let columns = |n: usize| (0..n).map(|place| format!("c{place}")).collect::<Vec<_>>().join(", ");
    for n in [499, 500] {
        canister.run(&format!("CREATE TABLE wide{n}({})", columns(n)));
        canister.run(&format!("INSERT INTO wide{n} VALUES ({})", joined(n, "1", ", ")));
        let set =
            (0..n).map(|place| format!("c{place} = c{} + {place}", (place + 1) % n)).collect::<Vec<_>>().join(", ");
        assert_eq!(canister.run(&format!("UPDATE wide{n} SET {set} RETURNING *")).rows[0].len(), n);
        canister.run(&format!("CREATE INDEX wide{n}_all ON wide{n}({})", columns(n)));
        assert_eq!(canister.rows(&format!("SELECT * FROM wide{n}")).unwrap()[0][7], int(8));
    }
    for refused in [format!("CREATE TABLE wide501({})", columns(501)), "ALTER TABLE wide500 ADD COLUMN more".to_owned()]
    {
        let answer = without_a_trace(&mut canister, |canister| canister.execute(&refused));
        assert_eq!(code(&answer), SQLITE_ERROR, "{answer:?}");
    }
}

/// SQLite says of a program that is too long what it says of a full heap.
#[test]
fn a_program_of_too_many_instructions() {
    let mut canister = with_tables();
    let list = |n: usize| format!("SELECT 1 IN ({})", joined(n, "2", ", "));
    assert_eq!(canister.rows(&list(250_000)), Ok(vec![vec![int(0)]]));
    let refused = canister.rows(&list(300_000));
    assert!(matches!(&refused, Err(Error::StorageFull { message }) if message.contains("heap")), "{refused:?}");
    let refused = without_a_trace(&mut canister, |canister| canister.execute(&list(300_000)));
    assert!(matches!(&refused, Err(Error::StorageFull { .. })), "{refused:?}");
    canister.run("INSERT INTO t VALUES (3)");
    assert_eq!(canister.rows("SELECT count(*) FROM t"), Ok(vec![vec![int(3)]]));
}

/// Between two looks at the budget there can be more than a message may take: while a statement is prepared, and inside one
/// function. The platform ends such a message, which then has changed nothing.
#[test]
fn what_cannot_be_stopped_is_ended_by_the_platform() {
    let mut canister = with_tables();
    let before = canister.checksum();
    let tables = chained(1, 40_000, |level, _| format!(", c{level} AS (SELECT 1)"));
    let object = chained(1, 50_000, |field, _| format!("\"{field}\":1,"));
    let endless = [
        format!("WITH c0 AS (SELECT x FROM t){tables} SELECT * FROM c0"),
        format!("SELECT json_patch('{{{object}\"x\":1}}', '{{{object}\"x\":1}}')"),
    ];
    for sql in endless {
        let argument = icsql_tests::encode((statement(&sql), None::<ReadOptions>));
        match canister.send(SQL_QUERY.name, Mode::Query, &argument).result {
            Err(reject) => assert_eq!(reject.code, ErrorCode::CanisterInstructionLimitExceeded, "{reject}"),
            Ok(reply) => {
                let answer: Answer<RowSet> = icsql_tests::decode(SQL_QUERY.name, &reply);
                assert!(matches!(answer, Err(Error::BudgetExceeded { .. })), "{answer:?}");
            }
        }
        assert_eq!(canister.checksum(), before);
    }
    assert_eq!(canister.rows("SELECT count(*) FROM t"), Ok(vec![vec![int(2)]]));
}
