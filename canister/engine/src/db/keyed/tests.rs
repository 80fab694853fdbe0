//! The walk and the records on bytes that nobody wrote, and on those that SQLite did not write for them.
use super::record;
use super::tree::{Page, Pages, Spot, Tree};
use crate::rng::Rng;
use crate::sqlite::{ValueRef, Which};

struct Image {
    page_bytes: usize,
    bytes: Vec<u8>,
}

impl<'p> Pages<'p> for &'p Image {
    fn page(&self, number: u32) -> Option<&'p [u8]> {
        self.bytes.chunks(self.page_bytes).nth((number as usize).checked_sub(1)?)
    }
}

fn encode(values: &[ValueRef<'_>], record: &mut Vec<u8>) {
    let plan = record::plan(values);
    record.clear();
    record.resize(plan.bytes, 0xa5);
    record::write(values, &plan, record).expect("there is room");
}

/// Pages that look like those of a tree: cells with records, children that may be anything.
fn image(rng: &mut Rng, page_bytes: usize, pages: usize) -> Image {
    let mut bytes = Vec::new();
    for _ in 0..pages {
        let mut page = rng.bytes(page_bytes);
        page[0] = *rng.pick(&[2, 10, 10, 10, 5, 0]);
        let cells = rng.below(12);
        page[3..5].copy_from_slice(&(cells as u16).to_be_bytes());
        let interior = page[0] == 2;
        let start = if interior { 12 } else { 8 };
        if interior {
            page[8..12].copy_from_slice(&(rng.below(pages + 2) as u32).to_be_bytes());
        }
        let mut end = page_bytes;
        for cell in 0..cells {
            let mut row = Vec::new();
            let len = rng.below(20);
            let text = rng.bytes(len);
            encode(&[ValueRef::Text(&text), ValueRef::Integer(cell as i64)], &mut row);
            let mut content = if interior { (rng.below(pages + 2) as u32).to_be_bytes().to_vec() } else { Vec::new() };
            content.push(row.len() as u8);
            content.extend(row);
            if rng.one_in(6) {
                let at = rng.below(content.len());
                content[at] = rng.next() as u8;
            }
            end = end.saturating_sub(content.len()).max(start + 40);
            let room = content.len().min(page_bytes - end);
            page[end..end + room].copy_from_slice(&content[..room]);
            page[start + 2 * cell..start + 2 * cell + 2].copy_from_slice(&(end as u16).to_be_bytes());
        }
        if rng.one_in(3) {
            let at = rng.below(page_bytes);
            page[at] = rng.next() as u8;
        }
        bytes.extend(page);
    }
    Image { page_bytes, bytes }
}

#[test]
fn any_bytes_are_walked_to_an_end() {
    for seed in 0..3_000 {
        let mut rng = Rng::new(171_000 + seed);
        let page_bytes = *rng.pick(&[512, 1_024]);
        let image = image(&mut rng, page_bytes, 8);
        let tree = Tree::new(1 + rng.below(8) as u32, page_bytes);
        let len = rng.below(20);
        let key = rng.bytes(len);
        if let Some(search) = tree.search(&&image, &key, rng.one_in(2)) {
            assert!(search.path.steps().len() <= 20, "{rng}");
            if let Some(found) = search.found {
                assert_eq!(found.key(), Some(key.as_slice()), "{rng}");
            }
        }
        for wanted in [Which::From(&key), Which::Above(&key), Which::Below(&key), Which::Last] {
            if let Some(Spot::Leaf(page, cell)) = tree.seek(&&image, wanted) {
                assert!(cell < page.len(), "{rng}");
                let copy = page.bytes().to_vec();
                let copied = Page::of_copy(&copy).and_then(|page| page.record(&tree, cell));
                assert_eq!(copied, page.record(&tree, cell), "{rng}");
            }
        }
        let len = rng.below(40);
        let bytes = rng.bytes(len);
        for column in 0..20 {
            // Only that it ends, and stays within its bytes.
            let _ = record::value(&bytes, column);
        }
    }
}

#[test]
fn a_record_reads_back_as_it_was_made() {
    let text = "t".repeat(20_000);
    let integers = (0..64).flat_map(|bit| {
        let power = 1_i64 << bit;
        [power, power.wrapping_sub(1), power.wrapping_neg(), power.wrapping_neg().wrapping_sub(1)]
    });
    let mut values: Vec<ValueRef<'_>> = integers.map(ValueRef::Integer).collect();
    values.extend([0, 1, 57, 58, 8_000, 20_000].map(|len| ValueRef::Text(&text.as_bytes()[..len])));
    values.extend([0, 1, 58, 59, 20_000].map(|len| ValueRef::Blob(&text.as_bytes()[..len])));
    values.extend([ValueRef::Null, ValueRef::Real(0.0), ValueRef::Real(f64::MIN), ValueRef::Real(f64::NEG_INFINITY)]);
    let mut bytes = Vec::new();
    for row in values.chunks(16) {
        encode(row, &mut bytes);
        for (column, value) in row.iter().enumerate() {
            assert_eq!(record::value(&bytes, column).as_ref(), Some(value), "column {column} of {row:?}");
        }
        assert_eq!(record::value(&bytes, row.len()), Some(ValueRef::Null), "a column that is not there");
        // A byte is missing at the end: what it belonged to is not there, and nothing else is read in its place.
        let cut = &bytes[..bytes.len() - 1];
        let last = record::value(cut, row.len() - 1);
        assert!(last.is_none() || last == row.last().copied(), "{last:?}");
    }
}
