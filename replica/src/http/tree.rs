//! Trees of labels and values, and what a certificate shows of them.
//!
//! The values of a [`Tree`] are at its leaves; every node knows its hash. [`Tree::witness`] keeps what was asked for
//! and the labels beside what is missing, so that a reader can tell "not there" from "not shown".

use ic_certification::hash_tree::{fork_hash, labeled_hash, leaf_hash};
use ic_certification::{AsHashTree, HashTree, empty, fork, labeled, leaf, pruned};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) type Hash = [u8; 32];
/// Labels from the root down.
pub(super) type Path = Vec<Vec<u8>>;

/// An immutable tree. Cheap to share.
#[derive(Clone)]
pub(super) struct Tree(Arc<Node>);

struct Node {
    hash: Hash,
    kind: Kind,
}

enum Kind {
    Leaf(Vec<u8>),
    /// Sorted by label.
    Labels(Vec<(Vec<u8>, Tree)>),
}

impl Tree {
    pub fn leaf(value: impl Into<Vec<u8>>) -> Self {
        let value = value.into();
        Self(Arc::new(Node { hash: leaf_hash(&value), kind: Kind::Leaf(value) }))
    }

    pub fn labels(children: impl IntoIterator<Item = (Vec<u8>, Tree)>) -> Self {
        let children: Vec<_> = children.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        let shown: Vec<_> = children.iter().map(|(label, child)| Shown::hidden(label, child.0.hash)).collect();
        let hash = join(shown).digest();
        Self(Arc::new(Node { hash, kind: Kind::Labels(children) }))
    }

    /// What a reader of these paths is shown. An empty path shows everything below.
    pub fn witness(&self, paths: &[&[Vec<u8>]]) -> HashTree {
        let children = match &self.0.kind {
            _ if paths.is_empty() => return pruned(self.0.hash),
            // A path that goes on below a leaf is missing, which the leaf shows.
            Kind::Leaf(value) => return leaf(value.clone()),
            Kind::Labels(_) if paths.iter().any(|path| path.is_empty()) => return self.as_hash_tree(),
            Kind::Labels(children) => children,
        };
        join(show(children.iter().map(|(label, tree)| (label.as_slice(), tree.0.hash)), paths, |at, rest| {
            children[at].1.witness(rest)
        }))
    }
}

impl AsHashTree for Tree {
    fn root_hash(&self) -> Hash {
        self.0.hash
    }

    fn as_hash_tree(&self) -> HashTree {
        match &self.0.kind {
            Kind::Leaf(value) => leaf(value.clone()),
            Kind::Labels(children) => join(
                children
                    .iter()
                    .map(|(label, child)| Shown { tree: labeled(label.clone(), child.as_hash_tree()), pruned: None })
                    .collect(),
            ),
        }
    }
}

/// A labelled child as a reader sees it.
pub(super) struct Shown {
    tree: HashTree,
    /// Its hash, when the reader sees no more than that.
    pruned: Option<Hash>,
}

impl Shown {
    fn hidden(label: &[u8], below: Hash) -> Self {
        let hash = labeled_hash(label, &below);
        Self { tree: pruned(hash), pruned: Some(hash) }
    }

    fn neighbour(label: &[u8], below: Hash) -> Self {
        Self { tree: labeled(label.to_vec(), pruned(below)), pruned: None }
    }
}

/// Shows of sorted children what these paths lead to, and the labels on both sides of what is missing. `below` gives
/// the witness of the child at an index, for the rests of the paths that lead to it.
pub(super) fn show<'a>(
    children: impl IntoIterator<Item = (&'a [u8], Hash)>,
    paths: &[&[Vec<u8>]],
    below: impl Fn(usize, &[&[Vec<u8>]]) -> HashTree,
) -> Vec<Shown> {
    let children: Vec<(&[u8], Hash)> = children.into_iter().collect();
    let mut rests: BTreeMap<usize, Vec<&[Vec<u8>]>> = BTreeMap::new();
    let mut neighbours = vec![false; children.len()];
    for path in paths {
        let Some((first, rest)) = path.split_first() else { continue };
        match children.binary_search_by(|(label, _)| (*label).cmp(first.as_slice())) {
            Ok(at) => rests.entry(at).or_default().push(rest),
            Err(at) => {
                let beside = [at.checked_sub(1), Some(at)].into_iter().flatten();
                beside.filter(|at| *at < children.len()).for_each(|at| neighbours[at] = true);
            }
        }
    }
    let shown = children.iter().enumerate().map(|(at, (label, hash))| match rests.get(&at) {
        Some(rest) => Shown { tree: labeled(label.to_vec(), below(at, rest)), pruned: None },
        None if neighbours[at] => Shown::neighbour(label, *hash),
        None => Shown::hidden(label, *hash),
    });
    shown.collect()
}

/// Joins sorted children to a balanced tree, whose shape depends on their number alone.
pub(super) fn join(children: Vec<Shown>) -> HashTree {
    fn half(children: &mut std::vec::IntoIter<Shown>, count: usize) -> Option<Shown> {
        if count <= 1 {
            return children.next();
        }
        let left = half(children, count / 2)?;
        let right = half(children, count - count / 2)?;
        Some(match (left.pruned, right.pruned) {
            (Some(left), Some(right)) => {
                let hash = fork_hash(&left, &right);
                Shown { tree: pruned(hash), pruned: Some(hash) }
            }
            _ => Shown { tree: fork(left.tree, right.tree), pruned: None },
        })
    }
    let count = children.len();
    half(&mut children.into_iter(), count).map_or_else(empty, |shown| shown.tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ic_certification::LookupResult;

    fn numbers(count: u8) -> Tree {
        Tree::labels((0..count).map(|n| (vec![2 * n], Tree::labels([(b"x".to_vec(), Tree::leaf([n]))]))))
    }

    #[test]
    fn a_witness_has_the_trees_hash_and_shows_what_was_asked_for() {
        for count in 0..20 {
            let tree = numbers(count);
            assert_eq!(tree.as_hash_tree().digest(), tree.root_hash(), "{count} children");
            for asked in 0..2 * count + 2 {
                let path = vec![vec![asked], b"x".to_vec()];
                let witness = tree.witness(&[&path]);
                assert_eq!(witness.digest(), tree.root_hash(), "{asked} of {count} children");
                let is_there = asked % 2 == 0 && asked / 2 < count;
                match witness.lookup_path(&path) {
                    LookupResult::Found(value) => assert!(is_there && value == [asked / 2], "{asked} of {count}"),
                    LookupResult::Absent => assert!(!is_there, "{asked} of {count} is there"),
                    other => panic!("{asked} of {count} children: {other:?}"),
                }
                // Others are not shown.
                let other = if asked == 0 { 2 } else { 0 };
                if is_there && other / 2 < count {
                    let looked_up = witness.lookup_path([&[other][..], b"x"]);
                    assert!(matches!(looked_up, LookupResult::Unknown), "{looked_up:?}");
                }
            }
        }
    }

    #[test]
    fn paths_that_end_early_or_late() {
        let tree = numbers(4);
        let whole = tree.witness(&[&[vec![2]]]);
        assert!(matches!(whole.lookup_path([&[2][..], b"x"]), LookupResult::Found([1])));
        let beyond = vec![vec![2], b"x".to_vec(), b"y".to_vec()];
        let witness = tree.witness(&[&beyond]);
        assert_eq!(witness.digest(), tree.root_hash());
        assert!(matches!(witness.lookup_path(&beyond), LookupResult::Absent));
        assert_eq!(tree.witness(&[&[]]).digest(), tree.root_hash());
        assert_eq!(tree.witness(&[]), pruned(tree.root_hash()));
    }
}
