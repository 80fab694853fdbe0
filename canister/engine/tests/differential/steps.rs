//! The statements of which histories are made.
use super::support::rng::Rng;
use icsql_engine::Value;

/// What a statement does to the key-value table, for the map.
#[derive(Debug, Clone)]
pub enum Effect {
    Nothing,
    Put(String, Value),
    Insert(String, Value),
    Delete(String),
    DeleteRange(String, String),
}

#[derive(Debug, Clone)]
pub struct Step {
    pub sql: String,
    pub params: Vec<Value>,
    pub effect: Effect,
}

impl Step {
    fn new(sql: impl Into<String>, params: impl Into<Vec<Value>>) -> Self {
        Self { sql: sql.into(), params: params.into(), effect: Effect::Nothing }
    }

    fn with(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// The changed rows, if the count is its own: a change of the schema leaves that of the statement before.
    pub fn count(&self, changes: u64) -> u64 {
        let counts = ["INSERT", "UPDATE", "DELETE"].iter().any(|verb| self.sql.starts_with(verb));
        if counts { changes } else { 0 }
    }
}

pub fn key(rng: &mut Rng) -> String {
    format!("k{:03}", rng.below(300))
}

fn value(rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => Value::Null,
        1 => Value::Integer(rng.next() as i64 >> rng.below(64)),
        2 => Value::Real(rng.below(100_000) as f64 / 8.0 - 5_000.0),
        3 | 4 => Value::Text("zürich→".chars().cycle().take(rng.below(200)).collect()),
        5 => Value::Blob(vec![rng.next() as u8; rng.below(12_000)]),
        _ => Value::Blob(vec![rng.next() as u8; rng.below(600)]),
    }
}

fn words(rng: &mut Rng) -> Value {
    const WORDS: [&str; 8] = ["lake", "river", "rivulet", "town", "old", "bridge", "snow", "freezing"];
    let words: Vec<&str> = (0..1 + rng.below(40)).map(|_| *rng.pick(&WORDS)).collect();
    Value::Text(words.join(" "))
}

/// A random statement.
pub fn step(rng: &mut Rng) -> Step {
    match rng.below(20) {
        0..6 => key_value_step(rng),
        6..13 => item_step(rng),
        13 | 14 => part_step(rng),
        15 | 16 => note_step(rng),
        _ => schema_step(rng),
    }
}

fn key_value_step(rng: &mut Rng) -> Step {
    let (key, value) = (key(rng), value(rng));
    let both = [Value::Text(key.clone()), value.clone()];
    match rng.below(6) {
        0 | 1 => Step::new("INSERT OR REPLACE INTO kv VALUES (?1, ?2)", both).with(Effect::Put(key, value)),
        2 => {
            let upsert = "INSERT INTO kv VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value";
            Step::new(upsert, both).with(Effect::Put(key, value))
        }
        3 => Step::new("INSERT INTO kv VALUES (?1, ?2)", both).with(Effect::Insert(key, value)),
        4 => Step::new("DELETE FROM kv WHERE key = ?1", [both[0].clone()]).with(Effect::Delete(key)),
        _ => {
            let start = key[..2 + rng.below(3)].to_owned();
            let end = format!("{start}~");
            let params = [&start, &end].map(|bound| Value::Text(bound.clone()));
            Step::new("DELETE FROM kv WHERE key >= ?1 AND key < ?2", params).with(Effect::DeleteRange(start, end))
        }
    }
}

fn item_step(rng: &mut Rng) -> Step {
    let name = Value::Text(key(rng));
    let number = Value::Integer(rng.below(400) as i64);
    let group = Value::Integer(rng.below(7) as i64);
    let size = Value::Real(rng.below(1_000) as f64 / 8.0);
    let body = Value::Blob(vec![rng.next() as u8; rng.below(3_000)]);
    match rng.below(12) {
        0 | 1 => Step::new("INSERT OR IGNORE INTO item VALUES (?1, ?2, ?3, ?4, ?5)", [number, group, name, size, body]),
        2 => Step::new("INSERT INTO item(grp, name, size) VALUES (?1, ?2, ?3)", [group, name, size]),
        3 => Step::new("UPDATE item SET size = size + 1, grp = ?2 WHERE grp = ?1", [group.clone(), group]),
        // Fails at the first name that is taken, after others were changed.
        4 => Step::new("UPDATE item SET name = 'k' || substr('00' || id, -3) WHERE id > ?1", [number]),
        5 => Step::new("DELETE FROM item WHERE id % 17 = ?1", [group]),
        6 => Step::new("INSERT INTO item(grp, name) SELECT grp, name || 'x' FROM item WHERE grp = ?1", [group]),
        7 => Step::new("UPDATE OR REPLACE item SET name = ?2 WHERE id = ?1", [number, name]),
        // Keeps what it had done before it failed.
        8 => Step::new(
            "INSERT OR FAIL INTO item(grp, name) SELECT grp, substr(name, 1, 4) || id FROM item WHERE grp = ?1 ORDER BY id",
            [group],
        ),
        // Gives up the whole transaction.
        9 if rng.one_in(3) => {
            Step::new("INSERT OR ROLLBACK INTO item VALUES (?1, ?2, ?3, ?4, NULL)", [number, group, name, size])
        }
        10 => Step::new("INSERT INTO item(grp, name) VALUES (?1, ?2) RETURNING id, grp, upper(name)", [group, name]),
        _ => Step::new("INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5)", [number, group, name, size, body]),
    }
}

fn part_step(rng: &mut Rng) -> Step {
    let (one, two) = (Value::Integer(rng.below(400) as i64), Value::Integer(rng.below(400) as i64));
    match rng.below(4) {
        // Half of the references lead to a row. A later one is checked by COMMIT.
        0 => Step::new("INSERT INTO part(item, later) VALUES (?1, ?2)", [one, two]),
        1 => {
            Step::new("INSERT INTO part(item, later) SELECT id, id FROM item WHERE id > ?1 ORDER BY id LIMIT 5", [one])
        }
        2 => Step::new("UPDATE part SET later = ?1 WHERE id % 4 = ?2 % 4", [one, two]),
        _ => Step::new("DELETE FROM part WHERE id % 5 = ?1 % 5", [one]),
    }
}

fn note_step(rng: &mut Rng) -> Step {
    let number = Value::Integer(rng.below(60) as i64);
    match rng.below(8) {
        0..3 => Step::new("INSERT INTO note(rowid, body) VALUES (?1, ?2)", [number, words(rng)]),
        3 | 4 => Step::new("INSERT OR REPLACE INTO note(rowid, body) VALUES (?1, ?2)", [number, words(rng)]),
        5 => Step::new("UPDATE note SET body = ?2 WHERE rowid = ?1", [number, words(rng)]),
        6 => Step::new("DELETE FROM note WHERE rowid = ?1", [number]),
        _ => Step::new(format!("INSERT INTO note(note) VALUES ('{}')", rng.pick(&["optimize", "integrity-check"])), []),
    }
}

fn schema_step(rng: &mut Rng) -> Step {
    let n = rng.below(3);
    let number = Value::Integer(rng.next() as i64 >> 40);
    let sql = match rng.below(14) {
        0 => format!("CREATE TABLE extra{n}(a INTEGER, b TEXT DEFAULT 'b')"),
        1 => format!("CREATE TABLE IF NOT EXISTS extra{n}(a INTEGER PRIMARY KEY, b, c AS (a + 1) STORED) STRICT"),
        2 => format!("DROP TABLE extra{n}"),
        3 => format!("ALTER TABLE extra{n} ADD COLUMN d DEFAULT 7"),
        4 => format!("ALTER TABLE extra{n} RENAME COLUMN b TO bb"),
        5 => format!("CREATE INDEX item_extra{n} ON item(size, name)"),
        6 => format!("CREATE INDEX item_extra{n} ON item(length(body)) WHERE grp < 3"),
        // Fails where there are duplicates, after the index was begun.
        7 => format!("CREATE UNIQUE INDEX item_extra{n} ON item(grp, size)"),
        8 | 9 => format!("DROP INDEX item_extra{n}"),
        10 => "REINDEX".to_owned(),
        11 => "CREATE VIEW IF NOT EXISTS large AS SELECT * FROM item WHERE length(body) > 100".to_owned(),
        _ => return Step::new(format!("INSERT INTO extra{n}(a) VALUES (?1)"), [number]),
    };
    Step::new(sql, [])
}
