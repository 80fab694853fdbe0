//! Tables that are read and written by their key past SQL: on the same b-tree, in the same transactions and under the same
//! budgets, for a third of the cost.
//!
//! A reading walks over pages in the page cache ([`tree`]) and takes rows out of them ([`record`]); a page that is not there
//! is read by SQLite first. A writing goes through SQLite's own functions for b-trees. No bytes of a page are handed
//! out: the closure that gets a row may write.
mod record;
#[cfg(test)]
mod tests;
mod tree;

use super::database::Database;
use super::error::Error;
use super::transaction::{Reader, Writer};
use crate::limits;
use crate::sqlite::{CachedPages, Change, Keyed, SqliteError, ValueRef, Which, lock, sys};
use core::cell::Cell;
use core::cmp::Ordering;
use core::ops::ControlFlow;
use std::ffi::CString;
use tree::{Page, Pages, Path, Record, Spot, Tree};

/// Bytes of a record that is put together on the stack.
const SMALL_RECORD_BYTES: usize = 256;

/// A table that is used by its key: `STRICT, WITHOUT ROWID`, with a TEXT as first column and PRIMARY KEY, and with no more
/// than 16 columns. It may have no index, trigger, foreign key, CHECK, default, generated or REAL column, since none of
/// these would be looked at.
///
/// ```
/// # use icsql_engine::stable::{DATABASE_MEMORY_ID, PAGE_HASH_MEMORY_ID, heap::HeapMemory, manager::MemoryManager};
/// # use icsql_engine::{Database, Error, Migration, OpenOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let manager = MemoryManager::open(HeapMemory::new())?;
/// # let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
/// # let mut database = Database::open(image, hashes, OpenOptions::default())?;
/// let sql = "CREATE TABLE city(name TEXT PRIMARY KEY NOT NULL, people INTEGER) STRICT, WITHOUT ROWID";
/// database.migrate(&[Migration { version: 1, name: "city", sql }])?;
/// let city = database.keyed("city")?;
/// database.put(&city, &["Zug".into(), 30_934.into()])?;
/// let people = database.read(|reader| reader.get(&city, "Zug", |row| row.integer(1)))?;
/// assert_eq!(people, Some(30_934));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct KeyedTable {
    name: CString,
    /// The [`Database`] that it is of.
    database: u64,
    /// The schema for which `table` holds.
    schema: Cell<u64>,
    table: Cell<Keyed>,
    tree: Cell<Tree>,
    /// Whether the last row of a transaction that wrote came after all others, as the next one then may too.
    ascending: Cell<bool>,
}

/// A row of a [`KeyedTable`].
pub struct KeyedRow<'r> {
    record: &'r [u8],
}

/// Which rows a [`Reader::scan`] goes through: those whose keys lie between two byte strings.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyRange<'k> {
    /// The lowest key; empty: from the first on.
    pub from: &'k [u8],
    /// The first key that is too high; none: to the last.
    pub to: Option<&'k [u8]>,
    /// Whether the highest comes first.
    pub reverse: bool,
}

impl<'r> KeyedRow<'r> {
    /// The value of a column, counted from 0, which is the key. A column that the row lacks is NULL.
    ///
    /// # Errors
    /// SQLite's `SQLITE_CORRUPT` for a row that contradicts itself.
    #[inline]
    pub fn value(&self, column: usize) -> Result<ValueRef<'r>, Error> {
        record::value(self.record, column).ok_or_else(corrupt)
    }

    /// An INTEGER.
    ///
    /// # Errors
    /// As [`KeyedRow::value`], and [`Error::ColumnType`].
    pub fn integer(&self, column: usize) -> Result<i64, Error> {
        match self.value(column)? {
            ValueRef::Integer(integer) => Ok(integer),
            other => Err(Error::ColumnType { column, expected: "integer", found: other.kind() }),
        }
    }

    /// A TEXT.
    ///
    /// # Errors
    /// As [`KeyedRow::integer`], also if it is not UTF-8.
    pub fn text(&self, column: usize) -> Result<&'r str, Error> {
        let value = self.value(column)?;
        let error = || Error::ColumnType { column, expected: "UTF-8 text", found: value.kind() };
        value.as_str().ok_or_else(error)
    }
}

#[cold]
fn corrupt() -> Error {
    let message = "database disk image is malformed".to_owned();
    Error::Sqlite(SqliteError { code: sys::SQLITE_CORRUPT, message, offset: None })
}

impl<'p> Pages<'p> for CachedPages<'p> {
    #[inline]
    fn page(&self, number: u32) -> Option<&'p [u8]> {
        CachedPages::page(self, number)
    }
}

impl Database {
    /// A table to be used by its key.
    ///
    /// # Errors
    /// [`Error::NotKeyed`] says what keeps it from that.
    pub fn keyed(&self, table: &str) -> Result<KeyedTable, Error> {
        let _entered = lock::enter();
        let not_keyed = |why| Error::NotKeyed { table: table.to_owned(), why };
        let name = CString::new(table).map_err(|_| not_keyed("a name holds no zero byte"))?;
        let found = self.look_at(&name)?;
        let page_bytes = self.page_bytes();
        Ok(KeyedTable {
            name,
            database: self.inner.id,
            schema: Cell::new(self.inner.connection.schema_state()),
            table: Cell::new(found),
            tree: Cell::new(Tree::new(found.root, page_bytes)),
            ascending: Cell::new(false),
        })
    }

    fn page_bytes(&self) -> usize {
        self.inner.file.borrow().superblock().page_bytes() as usize
    }

    #[cold]
    fn look_at(&self, name: &CString) -> Result<Keyed, Error> {
        let connection = &self.inner.connection;
        if connection.schema_state() == 0 {
            self.read(|reader| reader.query_row("SELECT 1 FROM main.sqlite_schema", (), |_| Ok::<_, Error>(())))?;
        }
        connection.keyed(name).map_err(|why| Error::NotKeyed { table: name.to_string_lossy().into_owned(), why })
    }

    /// Makes sure that the table is what it was when it was looked at.
    #[inline]
    fn check_keyed(&self, table: &KeyedTable) -> Result<(), Error> {
        if table.schema.get() == self.inner.connection.schema_state() && table.database == self.inner.id {
            return Ok(());
        }
        self.look_again(table)
    }

    #[cold]
    fn look_again(&self, table: &KeyedTable) -> Result<(), Error> {
        if table.database != self.inner.id {
            let name = table.name.to_string_lossy().into_owned();
            return Err(Error::NotKeyed { table: name, why: "it is a table of another database" });
        }
        let found = self.look_at(&table.name)?;
        table.table.set(found);
        table.tree.set(Tree::new(found.root, self.page_bytes()));
        table.schema.set(self.inner.connection.schema_state());
        Ok(())
    }

    /// Copies the whole record of a key to `target`. Whether there is one.
    #[inline]
    fn record(&self, table: &KeyedTable, key: &[u8], target: &mut Vec<u8>) -> Result<bool, Error> {
        let tree = table.tree.get();
        if let Some(search) = self.inner.connection.cached().and_then(|pages| tree.search(&pages, key, false)) {
            let Some(Record { local, bytes }) = search.found else { return Ok(false) };
            if local.len() == bytes {
                target.clear();
                target.extend_from_slice(local);
                return Ok(true);
            }
        }
        self.record_by_sqlite(&tree, Which::Exactly(key), target)
    }

    /// The same for one that the walk over the page cache cannot reach, or that does not lie in its cell alone.
    #[cold]
    fn record_by_sqlite(&self, tree: &Tree, which: Which<'_>, target: &mut Vec<u8>) -> Result<bool, Error> {
        let read = |target: &mut [u8]| {
            self.inner.connection.keyed_read(tree.root, which, target).map_err(|error| self.explain(error))
        };
        let Some(bytes) = read(&mut [])? else { return Ok(false) };
        target.clear();
        if target.try_reserve_exact(bytes).is_err() {
            return Err(self.heap_full());
        }
        target.resize(bytes, 0);
        Ok(read(target)? == Some(bytes))
    }

    fn get<T, E: From<Error>>(
        &self,
        table: &KeyedTable,
        key: &str,
        row: impl FnOnce(&KeyedRow<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.check_keyed(table)?;
        let mut buffer = self.inner.record.take();
        let outcome = match self.record(table, key.as_bytes(), &mut buffer) {
            Ok(false) => Ok(None),
            Ok(true) => self
                .meter_row(buffer.len(), buffer.len())
                .map_err(E::from)
                .and_then(|()| row(&KeyedRow { record: &buffer }).map(Some)),
            Err(error) => Err(error.into()),
        };
        self.give_back(buffer);
        outcome
    }

    /// Keeps a buffer for the next record, unless it is large.
    #[inline]
    fn give_back(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= limits::KEYED_BUFFER_BYTES_MAX {
            self.inner.record.set(buffer);
        }
    }

    /// Counts a row that is handed out, if the call has a budget.
    #[inline]
    fn meter_row(&self, bytes: usize, largest: usize) -> Result<(), Error> {
        let meter = &self.inner.meter;
        if !meter.is_on() {
            return Ok(());
        }
        meter.check_instructions(meter.now())?;
        meter.row(bytes as u64, largest as u64)
    }

    fn scan<E: From<Error>>(
        &self,
        table: &KeyedTable,
        range: &KeyRange<'_>,
        mut row: impl FnMut(&KeyedRow<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        // What is handed out are rows of a copy of their page, so that the closure may write. Then the scan goes on after
        // the last key, wherever that is now.
        let mut page = self.inner.record.take();
        let mut last: Vec<u8> = Vec::new();
        let mut begun = false;
        loop {
            self.check_keyed(table)?;
            let tree = table.tree.get();
            let wanted = match (range.reverse, begun) {
                (false, false) => Which::From(range.from),
                (false, true) => Which::Above(&last),
                (true, false) => range.to.map_or(Which::Last, Which::Below),
                (true, true) => Which::Below(&last),
            };
            let flow = match self.copy_next(&tree, wanted, &mut page)? {
                Place::End => break,
                Place::Record => self.hand_out(&page, range, &mut last, &mut row)?,
                Place::Leaf(cell) => self.rows_of_leaf(&tree, &page, cell, range, &mut last, &mut row)?,
            };
            begun = true;
            if flow.is_break() {
                break;
            }
        }
        self.give_back(page);
        Ok(())
    }

    /// Hands out the rows of a leaf from a cell on, and leaves the last key in `last`.
    fn rows_of_leaf<E: From<Error>>(
        &self,
        tree: &Tree,
        page: &[u8],
        cell: usize,
        range: &KeyRange<'_>,
        last: &mut Vec<u8>,
        row: &mut impl FnMut(&KeyedRow<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let leaf = Page::of_copy(page).ok_or_else(corrupt)?;
        let mut next = Some(cell);
        let mut final_key: &[u8] = &[];
        while let Some(cell) = next.filter(|cell| *cell < leaf.len()) {
            let record = leaf.record(tree, cell).ok_or_else(corrupt)?;
            // What is not in its cell alone, SQLite has to collect.
            let Some(key) = record.key().filter(|_| record.local.len() == record.bytes) else { break };
            if !range.holds(key) {
                return Ok(ControlFlow::Break(()));
            }
            self.meter_row(record.bytes, record.bytes)?;
            if row(&KeyedRow { record: record.local })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            final_key = key;
            next = if range.reverse { cell.checked_sub(1) } else { Some(cell + 1) };
        }
        last.clear();
        last.extend_from_slice(final_key);
        Ok(ControlFlow::Continue(()))
    }

    fn hand_out<E: From<Error>>(
        &self,
        record: &[u8],
        range: &KeyRange<'_>,
        last: &mut Vec<u8>,
        row: &mut impl FnMut(&KeyedRow<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let Some(ValueRef::Text(key)) = record::value(record, 0) else { return Err(corrupt().into()) };
        if !range.holds(key) {
            return Ok(ControlFlow::Break(()));
        }
        last.clear();
        last.extend_from_slice(key);
        self.meter_row(record.len(), record.len())?;
        row(&KeyedRow { record })
    }

    /// Copies the leaf or the record where a scan goes on to `copy`.
    fn copy_next(&self, tree: &Tree, wanted: Which<'_>, copy: &mut Vec<u8>) -> Result<Place, Error> {
        let whole = |record: Record<'_>| record.local.len() == record.bytes && record.key().is_some();
        let spot = self.inner.connection.cached().and_then(|pages| tree.seek(&pages, wanted));
        match spot {
            Some(Spot::End) => return Ok(Place::End),
            Some(Spot::Leaf(page, cell)) if page.record(tree, cell).is_some_and(whole) => {
                copy.clear();
                copy.extend_from_slice(page.bytes());
                return Ok(Place::Leaf(cell));
            }
            Some(Spot::Record(record)) if whole(record) => {
                copy.clear();
                copy.extend_from_slice(record.local);
                return Ok(Place::Record);
            }
            _ => {}
        }
        Ok(if self.record_by_sqlite(tree, wanted, copy)? { Place::Record } else { Place::End })
    }

    /// Checks values against the columns' types, and hands their record to `body`.
    #[inline]
    fn with_record<T>(
        &self,
        table: &KeyedTable,
        values: &[ValueRef<'_>],
        body: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Keyed { columns, types, .. } = table.table.get();
        if values.len() != columns {
            return Err(Error::Parameters { expected: columns, given: values.len() });
        }
        let mut bytes = 0_usize;
        for (column, (value, wanted)) in values.iter().zip(&types).enumerate() {
            if !wanted.takes(value) {
                return Err(Error::ColumnType { column, expected: wanted.wanted(), found: value.kind() });
            }
            bytes = bytes.saturating_add(value.as_bytes().map_or(8, <[u8]>::len));
        }
        if bytes > limits::KEYED_ROW_BYTES_MAX {
            let message = format!("a row of {bytes} bytes; the limit is {}", limits::KEYED_ROW_BYTES_MAX);
            return Err(Error::Sqlite(SqliteError { code: sys::SQLITE_TOOBIG, message, offset: None }));
        }
        let plan = record::plan(values);
        // The stack is dirty anyway: that saves a heap page, which costs 1,000 instructions.
        let mut small = [0; SMALL_RECORD_BYTES];
        if let Some(record) = small.get_mut(..plan.bytes) {
            record::write(values, &plan, record).ok_or_else(corrupt)?;
            return body(record);
        }
        let mut record = self.inner.record.take();
        record.clear();
        if record.try_reserve(plan.bytes).is_err() {
            return Err(self.heap_full());
        }
        record.resize(plan.bytes, 0);
        let outcome = record::write(values, &plan, &mut record).ok_or_else(corrupt).and_then(|()| body(&record));
        self.give_back(record);
        outcome
    }

    #[cold]
    fn heap_full(&self) -> Error {
        self.explain(SqliteError { code: sys::SQLITE_NOMEM, message: "out of memory".to_owned(), offset: None })
    }

    /// Looks for where a key is or belongs, to write there.
    #[inline]
    fn way_to(&self, tree: &Tree, key: &[u8], last: bool) -> Option<(Path, Ordering, bool)> {
        let pages = self.inner.connection.cached()?;
        let search = tree.search(&pages, key, last)?;
        Some((search.path, search.order, search.is_last))
    }

    fn put_record(&self, table: &KeyedTable, key: &[u8], record: &[u8]) -> Result<Change, Error> {
        let (connection, tree) = (&self.inner.connection, table.tree.get());
        let ascending = table.ascending.get();
        let outcome = match self.way_to(&tree, key, ascending) {
            Some((path, order, is_last)) => {
                // A row of a transaction of its own says nothing of the next, and would dirty a heap page.
                if is_last != ascending && self.inner.in_transaction.get() {
                    table.ascending.set(is_last);
                }
                connection.keyed_put(tree.root, path.steps(), path.page, order as i32, key, record)
            }
            None => connection.keyed_put(tree.root, &[], 0, 0, key, record),
        };
        outcome.map_err(|error| self.explain(error))
    }

    fn remove_record(&self, table: &KeyedTable, key: &[u8]) -> Result<bool, Error> {
        let (connection, tree) = (&self.inner.connection, table.tree.get());
        let outcome = match self.way_to(&tree, key, false) {
            Some((path, Ordering::Equal, _)) => connection.keyed_remove(tree.root, path.steps(), key),
            Some(_) => return Ok(false),
            None => connection.keyed_remove(tree.root, &[], key),
        };
        outcome.map_err(|error| self.explain(error))
    }

    /// Writes a row as a transaction of its own: adds its key or replaces what was there. As [`Database::execute`] it keeps
    /// no rollback journal.
    ///
    /// # Errors
    /// As [`Writer::put`]. Nothing has changed then.
    pub fn put(&mut self, table: &KeyedTable, row: &[ValueRef<'_>]) -> Result<(), Error> {
        let _entered = lock::enter();
        self.check_keyed(table)?;
        self.with_record(table, row, |record| {
            let key = row.first().and_then(ValueRef::as_bytes).unwrap_or(&[]);
            self.alone(|database| {
                let change = database.put_record(table, key, record)?;
                database.inner.file.borrow_mut().only(change.page, change.ranges());
                Ok(())
            })
        })
    }

    /// Removes a row as a transaction of its own. Whether there was one.
    ///
    /// # Errors
    /// SQLite's. Nothing has changed then.
    pub fn remove(&mut self, table: &KeyedTable, key: &str) -> Result<bool, Error> {
        let _entered = lock::enter();
        self.check_keyed(table)?;
        self.alone(|database| database.remove_record(table, key.as_bytes()))
    }

    /// Runs `body` as a transaction of its own.
    fn alone<T>(&self, body: impl FnOnce(&Self) -> Result<T, Error>) -> Result<T, Error> {
        let connection = &self.inner.connection;
        let before = connection.cached_pages();
        connection.set_journal(false);
        let committed = connection.keyed_begin().map_err(|error| self.explain(error)).and_then(|()| {
            let value = body(self)?;
            connection.keyed_commit().map_err(|error| self.explain(error))?;
            Ok(value)
        });
        if committed.is_err() {
            connection.roll_back_any();
            self.recover(before)?;
        }
        committed
    }
}

/// Where a scan goes on, once its bytes were copied.
enum Place {
    /// In the leaf that was copied, at this cell.
    Leaf(usize),
    /// At the record that was copied.
    Record,
    /// Nowhere.
    End,
}

impl KeyRange<'_> {
    /// Whether a key lies between the bounds.
    #[inline]
    fn holds(&self, key: &[u8]) -> bool {
        if self.reverse { key >= self.from } else { self.to.is_none_or(|to| key < to) }
    }
}

impl Reader<'_> {
    /// Hands the row of a key to `row`; `None` if there is none. It takes a third of what SQL takes.
    ///
    /// # Errors
    /// [`Error::NotKeyed`] if the table is no longer what it was; SQLite's; what `row` answers.
    #[inline]
    pub fn get<T, E: From<Error>>(
        &self,
        table: &KeyedTable,
        key: &str,
        row: impl FnOnce(&KeyedRow<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.database().check_transaction()?;
        self.database().get(table, key, row)
    }

    /// Hands the rows of a range to `row` in the order of their keys, until it answers [`ControlFlow::Break`]. Rows that
    /// `row` itself writes may be among them or not.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn scan<E: From<Error>>(
        &self,
        table: &KeyedTable,
        range: &KeyRange<'_>,
        row: impl FnMut(&KeyedRow<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        self.database().check_transaction()?;
        self.database().scan(table, range, row)
    }
}

impl Writer<'_> {
    /// Writes a row, a value for each column: adds its key or replaces what was there.
    ///
    /// # Errors
    /// [`Error::Parameters`] and [`Error::ColumnType`] for values that do not fit, [`Error::NotKeyed`] if the table is no longer
    /// what it was: nothing has changed then, and the transaction can go on. SQLite's: the whole transaction is
    /// undone then.
    pub fn put(&self, table: &KeyedTable, row: &[ValueRef<'_>]) -> Result<(), Error> {
        let database = self.database();
        database.check_transaction()?;
        database.check_keyed(table)?;
        database.meter_write(row)?;
        database.with_record(table, row, |record| {
            let key = row.first().and_then(ValueRef::as_bytes).unwrap_or(&[]);
            database.undone_if_failed(|| database.put_record(table, key, record).map(drop))
        })
    }

    /// Removes a row. Whether there was one.
    ///
    /// # Errors
    /// As [`Writer::put`].
    pub fn remove(&self, table: &KeyedTable, key: &str) -> Result<bool, Error> {
        let database = self.database();
        database.check_transaction()?;
        database.check_keyed(table)?;
        database.meter_write(&[])?;
        database.undone_if_failed(|| database.remove_record(table, key.as_bytes()))
    }
}

impl Database {
    /// Without a journal of the statement, what it did until it failed can only be undone with everything else.
    fn undone_if_failed<T>(&self, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        // It continues the transaction that is open, and notes its savepoints.
        self.inner.connection.keyed_begin().map_err(|error| self.explain(error))?;
        let outcome = body();
        if outcome.is_err() && !self.is_cut_off() {
            self.inner.connection.roll_back();
        }
        outcome
    }

    fn meter_write(&self, row: &[ValueRef<'_>]) -> Result<(), Error> {
        let meter = &self.inner.meter;
        if !meter.is_on() {
            return Ok(());
        }
        meter.check_params(&row)?;
        meter.check_instructions(meter.now())
    }
}
