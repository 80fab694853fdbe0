//! A walk through the b-tree of a table without rowid over pages that are in the page cache, without SQLite.
//!
//! It is safe whatever the bytes are: what it does not know (a page that is not in the cache, an unusual record, a page
//! that contradicts itself) it leaves to SQLite by answering `None`. The format is that of
//! <https://www.sqlite.org/fileformat2.html#b_tree_pages>: the records lie in the cells of the leaves and of the interior
//! pages alike.
use crate::sqlite::Which;
use core::cmp::Ordering;

/// Levels of a tree, at most; SQLite's own limit is 20.
const DEPTH_MAX: usize = 20;

/// The page's first byte: an interior page, or a leaf, of a b-tree without rowids.
const INTERIOR: u8 = 0x02;
const LEAF: u8 = 0x0a;

/// Where pages come from.
pub(super) trait Pages<'p> {
    /// The bytes of a page, if it is in the cache.
    fn page(&self, number: u32) -> Option<&'p [u8]>;
}

/// Where the tree is, and how its cells are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) root: u32,
    /// Bytes of a record that lie in its cell if all do.
    local_max: usize,
    /// Bytes of it that lie there at least if not all do.
    local_min: usize,
}

/// The way to a cell: the child taken on each level, and then the cell.
pub(super) struct Path {
    steps: [u16; DEPTH_MAX],
    len: usize,
    /// The page where the way ends.
    pub(super) page: u32,
}

impl Path {
    fn new() -> Self {
        Self { steps: [0; DEPTH_MAX], len: 0, page: 0 }
    }

    #[inline]
    fn push(&mut self, step: usize) -> Option<()> {
        *self.steps.get_mut(self.len)? = step as u16;
        self.len += 1;
        Some(())
    }

    /// The steps. Empty: the tree is.
    pub(super) fn steps(&self) -> &[u16] {
        self.steps.get(..self.len).unwrap_or(&[])
    }
}

/// A record, as far as it lies in its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'p> {
    pub(super) local: &'p [u8],
    /// Bytes of the whole record.
    pub(super) bytes: usize,
}

impl<'p> Record<'p> {
    /// The key, which is the first field: a text that lies in the cell.
    #[inline]
    pub(super) fn key(&self) -> Option<&'p [u8]> {
        let (&header, rest) = self.local.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let kind = match first {
            0..0x80 => usize::from(first),
            _ => {
                let second = *rest.first()?;
                if second >= 0x80 {
                    return None;
                }
                usize::from(first & 0x7f) << 7 | usize::from(second)
            }
        };
        if header >= 0x80 || kind < 13 || kind & 1 == 0 {
            return None;
        }
        let start = usize::from(header);
        self.local.get(start..start + (kind - 13) / 2)
    }
}

/// What a search has come to.
pub(super) struct Search<'p> {
    /// The record with the key.
    pub(super) found: Option<Record<'p>>,
    /// Where it is, or a neighbour of where it would be.
    pub(super) path: Path,
    /// How that neighbour compares with the key.
    pub(super) order: Ordering,
    /// Whether the key comes after all others.
    pub(super) is_last: bool,
}

/// Where a scan goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot<'p> {
    /// In a leaf, at this cell.
    Leaf(Page<'p>, usize),
    /// At this record of an interior page.
    Record(Record<'p>),
    /// Nowhere: no key is left.
    End,
}

/// A page of the tree, its header checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'p> {
    bytes: &'p [u8],
    /// Offsets of the cells, big-endian.
    cells: &'p [[u8; 2]],
    is_leaf: bool,
}

impl<'p> Page<'p> {
    #[inline]
    fn new(bytes: &'p [u8]) -> Option<Self> {
        let header: &[u8; 8] = bytes.first_chunk()?;
        let (is_leaf, start) = match header[0] {
            LEAF => (true, 8),
            INTERIOR => (false, 12),
            _ => return None,
        };
        let cells = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let (cells, _) = bytes.get(start..start + 2 * cells)?.as_chunks();
        Some(Self { bytes, cells, is_leaf })
    }

    /// How many cells it has.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// The same page somewhere else.
    pub(super) fn of_copy(copy: &'p [u8]) -> Option<Self> {
        Self::new(copy)
    }

    /// All of its bytes.
    pub(super) fn bytes(&self) -> &'p [u8] {
        self.bytes
    }

    /// The record in a cell.
    #[inline]
    pub(super) fn record(&self, tree: &Tree, cell: usize) -> Option<Record<'p>> {
        let rest = self.bytes.get(self.offset(cell)?..)?;
        let (&first, rest) = rest.split_first()?;
        let (bytes, rest) = if first < 0x80 { (usize::from(first), rest) } else { long_varint(first, rest)? };
        let local = if bytes <= tree.local_max { bytes } else { tree.local(bytes, self.bytes.len()) };
        Some(Record { local: rest.get(..local)?, bytes })
    }

    /// Where the record's size stands in the page.
    #[inline]
    fn offset(&self, cell: usize) -> Option<usize> {
        Some(usize::from(u16::from_be_bytes(*self.cells.get(cell)?)) + if self.is_leaf { 0 } else { 4 })
    }

    /// The key in a cell. Records of usual form, with their first numbers in a byte each, or two for the record's size, are
    /// known at one look; that takes half of what [`Record::key`] does.
    #[inline(always)]
    fn key(&self, tree: &Tree, cell: usize) -> Option<&'p [u8]> {
        let offset = self.offset(cell)?;
        if let Some(head) = self.bytes.get(offset..).and_then(|rest| rest.first_chunk::<4>()) {
            let head = u32::from_le_bytes(*head);
            // The record's size, its header's, and the key's type.
            let (bytes, header, kind, at) = match head & 0x8080_8080 {
                0 | 0x8000_0000 => (head & 0x7f, head >> 8 & 0x7f, head >> 16 & 0x7f, 1),
                0x80 => ((head & 0x7f) << 7 | head >> 8 & 0x7f, head >> 16 & 0x7f, head >> 24, 2),
                _ => (0, 0, 0, 0),
            };
            let (bytes, header, kind) = (bytes as usize, header as usize, kind as usize);
            if kind >= 13 && kind & 1 == 1 && bytes <= tree.local_max {
                let (start, len) = (offset + at + header, (kind - 13) / 2);
                return if header + len <= bytes { self.bytes.get(start..start + len) } else { None };
            }
        }
        self.record(tree, cell)?.key()
    }

    /// The child before a cell; for the number of cells the one after all.
    #[inline]
    fn child(&self, cell: usize) -> Option<u32> {
        let offset = match self.cells.get(cell) {
            Some(offset) => usize::from(u16::from_be_bytes(*offset)),
            None => 8,
        };
        Some(u32::from_be_bytes(*self.bytes.get(offset..)?.first_chunk()?))
    }

    /// The first cell for which `compare` does not answer `Less`, and whether it answers `Equal` for it. The keys
    /// ascend.
    #[inline(always)]
    fn search(&self, tree: &Tree, last_first: bool, compare: impl Fn(&[u8]) -> Ordering) -> Option<(usize, bool)> {
        let (mut low, mut high) = (0, self.cells.len());
        if last_first && high > 0 && compare(self.key(tree, high - 1)?) == Ordering::Less {
            return Some((high, false));
        }
        while low < high {
            let middle = (low + high) / 2;
            match compare(self.key(tree, middle)?) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Some((low, false))
    }
}

/// A number of two bytes or more; three are enough for every record that lies in its cell, five for every other.
fn long_varint(first: u8, mut rest: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = u64::from(first & 0x7f);
    for _ in 0..4 {
        let (&byte, left) = rest.split_first()?;
        rest = left;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((usize::try_from(number).ok()?, rest));
        }
    }
    None
}

impl Tree {
    /// A tree in pages of `page_bytes` bytes, of which none is reserved.
    pub(super) fn new(root: u32, page_bytes: usize) -> Self {
        let share = |of_255: usize| page_bytes.saturating_sub(12) * of_255 / 255;
        Self { root, local_max: share(64).saturating_sub(23), local_min: share(32).saturating_sub(23) }
    }

    /// Bytes in the cell of a record that does not lie in it whole.
    fn local(&self, bytes: usize, page_bytes: usize) -> usize {
        // Each page that takes up the rest begins with the number of the next.
        let surplus = self.local_min + bytes.saturating_sub(self.local_min) % page_bytes.saturating_sub(4).max(1);
        if surplus <= self.local_max { surplus } else { self.local_min }
    }

    /// Looks for a key; first, if it is likely to come `last`, behind all others, which takes one comparison on each level.
    #[inline]
    pub(super) fn search<'p>(&self, pages: &impl Pages<'p>, key: &[u8], last: bool) -> Option<Search<'p>> {
        let mut path = Path::new();
        path.page = self.root;
        let mut is_last = true;
        loop {
            let page = Page::new(pages.page(path.page)?)?;
            let (cell, found) = page.search(self, last, |other| other.cmp(key))?;
            is_last &= cell == page.len();
            if found {
                path.push(cell)?;
                return Some(Search { found: page.record(self, cell), path, order: Ordering::Equal, is_last: false });
            }
            if page.is_leaf {
                let order = if cell == 0 { Ordering::Greater } else { Ordering::Less };
                if page.len() > 0 {
                    path.push(cell.saturating_sub(1))?;
                }
                return Some(Search { found: None, path, order, is_last });
            }
            path.push(cell)?;
            path.page = page.child(cell)?;
        }
    }

    /// Looks for where a scan goes on.
    pub(super) fn seek<'p>(&self, pages: &impl Pages<'p>, wanted: Which<'_>) -> Option<Spot<'p>> {
        let backward = matches!(wanted, Which::Below(_) | Which::Last);
        // `Less`: what is wanted comes after this key, `Greater`: before it, unless it is this.
        let compare = |key: &[u8]| match wanted {
            Which::Exactly(wanted) | Which::From(wanted) => key.cmp(wanted),
            Which::Above(below) => key.cmp(below).then(Ordering::Less),
            Which::Below(above) => key.cmp(above).then(Ordering::Greater),
            Which::Last => Ordering::Less,
        };
        // The nearest key in that direction on the levels above.
        let mut nearest = Spot::End;
        let mut page = Page::new(pages.page(self.root)?)?;
        for _ in 0..DEPTH_MAX {
            let (cell, found) = page.search(self, false, compare)?;
            let candidate = if found || !backward { Some(cell) } else { cell.checked_sub(1) };
            let candidate = candidate.filter(|candidate| *candidate < page.len());
            if page.is_leaf {
                return Some(candidate.map_or(nearest, |candidate| Spot::Leaf(page, candidate)));
            }
            if let Some(candidate) = candidate {
                nearest = Spot::Record(page.record(self, candidate)?);
            }
            if found {
                return Some(nearest);
            }
            page = Page::new(pages.page(page.child(cell)?)?)?;
        }
        None
    }
}
