//! What people use SQLite for, each thing once and with every page size: it answers as stock SQLite does, at once, after
//! reopening, and after ANALYZE, REINDEX and VACUUM.
mod support;

use icsql_engine::stable::heap::HeapMemory;
use icsql_engine::{Database, Error, HostEnv, OpenOptions, Value};
use std::rc::Rc;
use support::stock::{self, Outcome, engine_code};
use support::{assert_whole, open, open_with, rows};

/// Statements that change something, each a transaction of its own, and questions about what they left.
struct Feature {
    name: &'static str,
    writes: &'static [&'static str],
    asks: &'static [&'static str],
}

const FEATURES: &[Feature] = &[
    Feature {
        name: "STRICT, generated columns, CHECK and DEFAULT",
        writes: &[
            "CREATE TABLE price(
                id INTEGER PRIMARY KEY AUTOINCREMENT, net REAL NOT NULL CHECK (net >= 0), rate INT DEFAULT 8,
                gross REAL AS (net * (100 + rate) / 100) STORED, label TEXT AS (printf('%.2f', gross)) VIRTUAL, tag ANY
            ) STRICT",
            "INSERT INTO price(net, rate, tag) VALUES (10, 20, '1'), (2.5, 0, 1), (100, NULL, x'01')",
            "INSERT INTO price(net) VALUES (3)",
            "INSERT INTO price(net, rate) VALUES (1, 'many')",
            "INSERT INTO price(net) VALUES (-1)",
            "INSERT INTO price(net, gross) VALUES (1, 1)",
            "DELETE FROM price WHERE id = 4",
            "INSERT INTO price(net) VALUES (4)",
        ],
        asks: &["SELECT *, label, typeof(tag) FROM price", "SELECT * FROM sqlite_sequence"],
    },
    Feature {
        name: "WITHOUT ROWID and composite keys",
        writes: &[
            "CREATE TABLE cell(row INT, col TEXT COLLATE NOCASE, v, PRIMARY KEY (col, row DESC)) WITHOUT ROWID",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400)
             INSERT INTO cell SELECT i % 20, char(97 + i % 26, 97 + i % 7), i * i FROM n WHERE true ON CONFLICT DO NOTHING",
            "INSERT INTO cell VALUES (1, 'BB', 0)",
            "UPDATE OR IGNORE cell SET col = 'zz' WHERE v % 5 = 0",
            "DELETE FROM cell WHERE (col, row) IN (SELECT col, max(row) FROM cell GROUP BY col)",
        ],
        asks: &["SELECT * FROM cell", "SELECT row, v FROM cell WHERE col = 'ZZ' ORDER BY row"],
    },
    Feature {
        name: "partial and expression indexes",
        writes: &[
            "CREATE TABLE doc(id INTEGER PRIMARY KEY, state TEXT, body TEXT)",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900)
             INSERT INTO doc SELECT i, iif(i % 9, 'done', 'open'), json_object('n', i % 50, 'who', printf('p%02d', i % 31)) FROM n",
            "CREATE INDEX doc_open ON doc(id) WHERE state = 'open'",
            "CREATE INDEX doc_who ON doc(body ->> 'who', json_extract(body, '$.n'))",
            "CREATE UNIQUE INDEX doc_once ON doc(lower(state)) WHERE id > 895 AND state = 'open'",
            "UPDATE doc SET state = 'OPEN' WHERE id = 18",
            "UPDATE doc SET state = 'open' WHERE id IN (897, 898)",
        ],
        asks: &[
            "SELECT id FROM doc INDEXED BY doc_open WHERE state = 'open' ORDER BY id",
            "SELECT id, body FROM doc INDEXED BY doc_who WHERE body ->> 'who' = 'p07' ORDER BY 1",
            "SELECT name, partial FROM pragma_index_list('doc') ORDER BY name",
        ],
    },
    Feature {
        name: "UPSERT and RETURNING",
        writes: &[
            "CREATE TABLE hits(page TEXT PRIMARY KEY, n INT DEFAULT 1, last INT) WITHOUT ROWID",
            "INSERT INTO hits(page, last) VALUES ('a', 1), ('b', 2), ('a', 3), ('c', 4)
             ON CONFLICT(page) DO UPDATE SET n = n + 1, last = excluded.last WHERE excluded.last > last RETURNING page, n, last",
            "INSERT INTO hits(page) VALUES ('a') ON CONFLICT DO NOTHING RETURNING *",
            "UPDATE hits SET n = n * 10 FROM (SELECT 'b' AS p) WHERE page = p RETURNING n, old_n FROM hits",
            "UPDATE hits SET n = h.n + 5 FROM hits AS h WHERE hits.page = 'c' AND h.page = 'a' RETURNING hits.page, hits.n",
            "DELETE FROM hits WHERE page < 'c' RETURNING page || '!' AS gone",
            "REPLACE INTO hits VALUES ('c', 7, 8), ('d', 9, 10) RETURNING rowid",
            "REPLACE INTO hits VALUES ('c', 7, 8), ('d', 9, 10) RETURNING n + last",
        ],
        asks: &["SELECT * FROM hits"],
    },
    Feature {
        name: "foreign keys",
        writes: &[
            "CREATE TABLE band(id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
            "CREATE TABLE album(id INTEGER PRIMARY KEY, band INT NOT NULL REFERENCES band ON DELETE CASCADE, title TEXT)",
            "CREATE TABLE track(album INT REFERENCES album ON DELETE CASCADE, n INT, cover TEXT REFERENCES band(name)
                ON UPDATE CASCADE ON DELETE SET NULL, PRIMARY KEY (album, n))",
            "CREATE TABLE fan(name TEXT, band INT DEFAULT 2 REFERENCES band ON DELETE SET DEFAULT)",
            "INSERT INTO band VALUES (1, 'one'), (2, 'two'), (3, 'three')",
            "INSERT INTO album VALUES (10, 1, 'x'), (11, 1, 'y'), (12, 2, 'z')",
            "INSERT INTO track VALUES (10, 1, 'two'), (10, 2, 'three'), (11, 1, NULL), (12, 1, 'one'), (12, 2, 'three')",
            "INSERT INTO fan VALUES ('f', 3), ('g', 1)",
            "INSERT INTO album VALUES (13, 9, 'nobody')",
            "UPDATE band SET name = 'dos' WHERE id = 2",
            "DELETE FROM band WHERE id = 3",
            "DELETE FROM band WHERE name = 'one'",
            "DELETE FROM band",
        ],
        asks: &[
            "SELECT * FROM album",
            "SELECT * FROM track ORDER BY album, n",
            "SELECT * FROM fan ORDER BY name",
            "PRAGMA foreign_key_check",
        ],
    },
    Feature {
        name: "triggers and views",
        writes: &[
            "CREATE TABLE account(id INTEGER PRIMARY KEY, owner TEXT, cents INT NOT NULL)",
            "CREATE TABLE journal(n INTEGER PRIMARY KEY, what TEXT, cents INT)",
            "CREATE TABLE total(one INTEGER PRIMARY KEY CHECK (one = 1), cents INT, changes INT)",
            "INSERT INTO total VALUES (1, 0, 0)",
            "CREATE TRIGGER account_new AFTER INSERT ON account BEGIN
                INSERT INTO journal(what, cents) VALUES ('new ' || new.owner, new.cents); END",
            "CREATE TRIGGER account_set AFTER UPDATE OF cents ON account WHEN old.cents <> new.cents BEGIN
                INSERT INTO journal(what, cents) VALUES ('set ' || new.owner, new.cents - old.cents); END",
            "CREATE TRIGGER account_low BEFORE UPDATE ON account WHEN new.cents < 0 BEGIN
                SELECT RAISE(ABORT, 'not below zero'); END",
            "CREATE TRIGGER journal_sum AFTER INSERT ON journal BEGIN
                UPDATE total SET cents = cents + new.cents, changes = changes + 1; END",
            "CREATE VIEW rich(owner, francs) AS SELECT owner, cents / 100.0 FROM account WHERE cents >= 10000",
            "CREATE TRIGGER rich_put INSTEAD OF INSERT ON rich BEGIN
                INSERT INTO account(owner, cents) VALUES (new.owner, CAST(new.francs * 100 AS INT)); END",
            "INSERT INTO account(owner, cents) VALUES ('ada', 50), ('bob', 20000)",
            "INSERT INTO rich VALUES ('eve', 333.25)",
            "UPDATE account SET cents = cents - 40",
            "UPDATE account SET cents = cents - 40",
        ],
        asks: &["SELECT * FROM account", "SELECT * FROM journal", "SELECT * FROM total", "SELECT * FROM rich ORDER BY 1"],
    },
    Feature {
        name: "full-text search",
        writes: &[
            "CREATE VIRTUAL TABLE page USING fts5(title, body, kind UNINDEXED, prefix = '2 3', tokenize = 'porter unicode61 remove_diacritics 2')",
            "INSERT INTO page VALUES ('Lakes', 'The lake of Zürich is freezing over, and lakes in the Alps froze long ago.', 'a'),
                ('Rivers', 'A river flows by the old town; the town by the lake is older.', 'b'),
                ('Towns', 'Zurich and Bern are towns. Bern lies on the river Aare.', 'c')",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)
             INSERT INTO page SELECT 'Note ' || i, 'number ' || i || ' is ' || iif(i % 2, 'odd', 'even') || iif(i % 17, '', ' and a lake'), 'n' FROM n",
            "UPDATE page SET body = body || ' frozen' WHERE title = 'Towns'",
            "DELETE FROM page WHERE rowid % 10 = 0",
            "INSERT INTO page(page, rank) VALUES ('rank', 'bm25(10.0, 5.0)')",
            "INSERT INTO page(page) VALUES ('integrity-check')",
            "CREATE VIRTUAL TABLE terms USING fts5vocab(page, 'row')",
        ],
        asks: &[
            "SELECT rowid, title, highlight(page, 1, '<', '>') FROM page WHERE page MATCH 'freeze OR zurich' ORDER BY rowid",
            "SELECT title, round(rank, 9) FROM page WHERE page MATCH 'lake' ORDER BY rank, rowid LIMIT 10",
            "SELECT snippet(page, -1, '[', ']', '…', 6) FROM page WHERE page MATCH 'body: riv* NOT flows' ORDER BY rowid",
            "SELECT count(*) FROM page WHERE page MATCH '\"is even\" AND note'",
            "SELECT rowid FROM page WHERE page MATCH 'NEAR(old town, 3)' ORDER BY bm25(page, 1.0, 2.0)",
            "SELECT * FROM terms WHERE term GLOB 'l*' OR doc > 100",
            "SELECT * FROM page WHERE page MATCH '\"' LIMIT 1",
        ],
    },
    Feature {
        name: "JSON",
        writes: &[
            "CREATE TABLE event(id INTEGER PRIMARY KEY, data TEXT CHECK (json_valid(data)), packed BLOB)",
            r#"INSERT INTO event(data) VALUES ('{"kind":"a","tags":["x","y"],"size":1.5}'), ('{"kind":"b","tags":[],"deep":{"er":[null,true]}}')"#,
            "INSERT INTO event(data) VALUES ('{')",
            "UPDATE event SET packed = jsonb(data)",
            "UPDATE event SET data = json_patch(data, '{\"kind\":null,\"new\":[1]}') WHERE data ->> 'kind' = 'b'",
            "UPDATE event SET data = json_insert(data, '$.tags[#]', 'z'), packed = jsonb_set(packed, '$.size', 2)",
        ],
        asks: &[
            "SELECT id, data, json(packed), data -> '$.tags', data ->> '$.deep.er[1]' FROM event",
            "SELECT event.id, tag.key, tag.value, tag.fullkey FROM event, json_each(data, '$.tags') AS tag ORDER BY 1, 2",
            "SELECT json_group_object(fullkey, type) FROM (SELECT fullkey, type FROM event, json_tree(data) WHERE id = 2)",
            "SELECT json_extract(data, '$.tags[') FROM event",
        ],
    },
    Feature {
        name: "window functions and recursion",
        writes: &[
            "CREATE TABLE sale(day TEXT, shop INT, sum INT)",
            "WITH RECURSIVE d(n, day) AS (SELECT 0, '2024-02-25' UNION ALL SELECT n + 1, date(day, '+1 day') FROM d LIMIT 40)
             INSERT INTO sale SELECT day, n % 3, n * 37 % 101 FROM d",
            "CREATE TABLE place(id INT PRIMARY KEY, inside INT, name TEXT)",
            "INSERT INTO place VALUES (1, NULL, 'world'), (2, 1, 'europe'), (3, 2, 'zürich'), (4, 1, 'asia'), (5, 4, 'tokyo'), (6, 2, 'bern')",
        ],
        asks: &[
            "SELECT day, shop, sum(sum) OVER w, rank() OVER w, lag(sum, 2, -1) OVER w, ntile(4) OVER w FROM sale
             WINDOW w AS (PARTITION BY shop ORDER BY sum DESC, day) ORDER BY shop, day",
            "SELECT day, avg(sum) OVER (ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES),
             first_value(sum) FILTER (WHERE true) OVER (ORDER BY day) FROM sale",
            "SELECT day, count(*) FILTER (WHERE shop = 1) OVER (ORDER BY day GROUPS 3 PRECEDING) FROM sale ORDER BY day",
            "WITH RECURSIVE tree(id, path, depth) AS (SELECT id, name, 0 FROM place WHERE inside IS NULL UNION ALL
             SELECT p.id, path || '/' || p.name, depth + 1 FROM place AS p JOIN tree ON p.inside = tree.id ORDER BY 3 DESC, 2)
             SELECT path, depth FROM tree",
            "WITH RECURSIVE c(x, y, i) AS (SELECT -1.5, 0.5, 0 UNION ALL SELECT x * x - y * y + 0.1, 2 * x * y, i + 1 FROM c LIMIT 7)
             SELECT round(x, 6), round(y, 6), i FROM c",
        ],
    },
    Feature {
        name: "joins, compounds and changes of the schema",
        writes: &[
            "CREATE TABLE wide(a, b, c)",
            "INSERT INTO wide VALUES (1, 2, 3), (4, 5, 6), (NULL, 8, 9)",
            "ALTER TABLE wide ADD COLUMN d TEXT NOT NULL DEFAULT 'd'",
            "ALTER TABLE wide RENAME COLUMN b TO bee",
            "ALTER TABLE wide DROP COLUMN c",
            "ALTER TABLE wide RENAME TO broad",
            "CREATE TABLE copy AS SELECT *, bee * 1.5 AS more FROM broad",
            "DROP TABLE wide",
            "UPDATE copy SET (a, bee) = (SELECT max(a), min(bee) FROM broad)",
        ],
        asks: &[
            "SELECT * FROM broad FULL JOIN copy ON broad.a = copy.a + 3 ORDER BY 1, 5",
            "SELECT bee FROM broad EXCEPT SELECT bee FROM copy UNION ALL VALUES (99) ORDER BY 1",
            "SELECT DISTINCT d, group_concat(bee, '-' ORDER BY bee DESC) FROM broad GROUP BY d HAVING count(a) > 1",
            "SELECT sql FROM sqlite_schema WHERE name IN ('broad', 'copy') ORDER BY name",
        ],
    },
];

/// Maintenance, after which every question must have the same answer.
const MAINTENANCE: &[&str] = &["ANALYZE", "REINDEX", "REINDEX doc_who", "DROP INDEX doc_open", "ANALYZE doc"];

const STATISTICS: &str = "SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY tbl, idx, stat";

fn answer(database: &Database, sql: &str) -> Outcome<Vec<Vec<Value>>> {
    database.read(|tx| rows(tx, sql)).map_err(|error| engine_code(&error))
}

fn assert_same_answers(database: &Database, stock: &rusqlite::Connection, context: &str) {
    for Feature { name, asks, .. } in FEATURES {
        for sql in *asks {
            let expected = stock::rows(stock, sql, &[]);
            assert_eq!(answer(database, sql), expected, "{context}, {name}: {sql}");
        }
    }
}

#[test]
fn each_feature_works_as_in_stock_sqlite_with_every_page_size() {
    for log2 in 9..=16 {
        let page_bytes = 1 << log2;
        let options = || OpenOptions { page_bytes, ..OpenOptions::default() };
        let raw = HeapMemory::new();
        let mut database = open_with(&raw, options()).unwrap();
        let stock = stock::in_memory();
        let (mut worked, mut failed) = (0, 0);
        for Feature { name, writes, asks } in FEATURES {
            for sql in *writes {
                let expected = stock::rows(&stock, sql, &[]);
                // Half of them in a transaction, half on their own. Rows of RETURNING come from a transaction.
                let found = if expected.as_ref().is_ok_and(Vec::is_empty) && (worked + log2) % 2 == 0 {
                    database.execute(*sql, ()).map(|_| Vec::new())
                } else {
                    database.write(|tx| {
                        let mut found = Vec::new();
                        tx.query(*sql, (), |row| {
                            let values = (0..row.columns()).map(|n| Ok(row.value(n)?.to_value()));
                            found.push(values.collect::<Result<_, Error>>()?);
                            Ok::<_, Error>(std::ops::ControlFlow::Continue(()))
                        })?;
                        Ok::<_, Error>(found)
                    })
                };
                let found = found.map_err(|error| engine_code(&error));
                assert_eq!(found, expected, "pages of {page_bytes}, {name}: {sql}");
                *if expected.is_ok() { &mut worked } else { &mut failed } += 1;
            }
            for sql in *asks {
                let expected = stock::rows(&stock, sql, &[]);
                assert_eq!(answer(&database, sql), expected, "pages of {page_bytes}, {name}: {sql}");
            }
        }
        // Those that must fail are few and known: a test whose statements all fail would prove nothing.
        assert_eq!((worked, failed), (70, 12), "pages of {page_bytes}");
        drop(database);
        let mut database = open_with(&raw, options()).unwrap();
        assert_eq!(database.meta().page_bytes, page_bytes);
        assert_same_answers(&database, &stock, &format!("pages of {page_bytes}, reopened"));
        for sql in MAINTENANCE {
            database.execute(*sql, ()).unwrap();
            stock.execute_batch(sql).unwrap();
        }
        assert_eq!(answer(&database, STATISTICS), stock::rows(&stock, STATISTICS, &[]));
        drop(database);
        let mut database = open_with(&raw, options()).unwrap();
        assert_same_answers(&database, &stock, &format!("pages of {page_bytes}, after maintenance"));

        let free = "PRAGMA freelist_count";
        assert_ne!(answer(&database, free), Ok(vec![vec![Value::Integer(0)]]), "there is nothing to vacuum");
        database.vacuum().unwrap();
        stock.execute_batch("VACUUM").unwrap();
        assert_eq!(answer(&database, free), Ok(vec![vec![Value::Integer(0)]]));
        assert_same_answers(&database, &stock, &format!("pages of {page_bytes}, after VACUUM"));
        assert_whole(&mut database);
        drop(database);
        let database = open_with(&raw, options()).unwrap();
        assert_same_answers(&database, &stock, &format!("pages of {page_bytes}, after VACUUM and reopened"));
    }
}

#[test]
fn the_time_is_that_of_the_message_and_in_utc() {
    let env = Rc::new(HostEnv::default());
    let options = OpenOptions { env: Some(env.clone()), ..OpenOptions::default() };
    let raw = HeapMemory::new();
    let mut database = open_with(&raw, options).unwrap();
    let schema =
        "CREATE TABLE seen(n INT, at TEXT DEFAULT CURRENT_TIMESTAMP, day TEXT DEFAULT (date('now', '-1 day')))";
    database.execute(schema, ()).unwrap();
    // The last second of a leap day, and the first of 1970.
    for (n, time_ns) in [(1, 1_709_251_199_999_999_999), (2, 998_000_000)] {
        env.set_time_ns(time_ns);
        database.execute("INSERT INTO seen(n) VALUES (?1)", (n,)).unwrap();
    }
    let now = "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now'), unixepoch(), CURRENT_TIME, julianday('now') - 2440587.5 < 0.00002";
    let text = |text: &str| Value::Text(text.into());
    let expected = [text("1970-01-01 00:00:00.998"), Value::Integer(0), text("00:00:00"), Value::Integer(1)];
    assert_eq!(answer(&database, now), Ok(vec![expected.to_vec()]));
    drop(database);
    let expected = [
        [Value::Integer(1), text("2024-02-29 23:59:59"), text("2024-02-28")],
        [Value::Integer(2), text("1970-01-01 00:00:00"), text("1969-12-31")],
    ];
    assert_eq!(answer(&open(&raw), "SELECT * FROM seen"), Ok(expected.map(Vec::from).to_vec()));
}
