//! How many tokens something has, field by field: an entry, or all live entries of a version.
//!
//! In: counts by field. Out: the same, and sums of them.
//! **Invariant:** a field that is not there has no tokens. So counts of builds that know different numbers of fields compare
//! and add up, and a field that is added later changes nothing of what was counted before.

use std::fmt;

/// How many fields are counted at the most: what memory has room for. In files a list says itself how long it is.
pub const MOST_FIELDS: usize = 4;
/// How many fields are always written: those that every format has.
pub(crate) const LEAST_FIELDS: usize = 2;

/// Counts by field, in the order of the lexical index's schema: text, then name, then what was added later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tokens<T = u64>([T; MOST_FIELDS]);

impl<T: Copy + Default + PartialEq> Tokens<T> {
    /// Returns the counts that a list says, or nothing where it is longer than [`MOST_FIELDS`].
    #[must_use]
    pub fn from_list(list: &[T]) -> Option<Self> {
        let mut counts = [T::default(); MOST_FIELDS];
        counts.get_mut(..list.len())?.copy_from_slice(list);
        Some(Self(counts))
    }

    /// Returns the counts as a list to be written: of two fields at least, and up to the last one that has tokens.
    #[must_use]
    pub fn as_list(&self) -> &[T] {
        let last = self.0.iter().rposition(|count| *count != T::default());
        &self.0[..last.map_or(0, |last| last + 1).max(LEAST_FIELDS)]
    }

    /// Returns the counts of the first `N` fields.
    #[must_use]
    pub fn first<const N: usize>(&self) -> [T; N] {
        const { assert!(N <= MOST_FIELDS, "memory has room for so many fields") };
        std::array::from_fn(|field| self.0[field])
    }
}

impl<T: Copy + Default, const N: usize> From<[T; N]> for Tokens<T> {
    fn from(fields: [T; N]) -> Self {
        const { assert!(N <= MOST_FIELDS, "memory has room for so many fields") };
        let mut counts = [T::default(); MOST_FIELDS];
        counts[..N].copy_from_slice(&fields);
        Self(counts)
    }
}

impl Tokens {
    /// Adds others.
    pub fn add(&mut self, other: impl Into<Self>) {
        self.0.iter_mut().zip(other.into().0).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
    }

    /// Takes others off. What was never added leaves a sum that no version has.
    pub fn remove(&mut self, other: impl Into<Self>) {
        self.0.iter_mut().zip(other.into().0).for_each(|(sum, count)| *sum = sum.wrapping_sub(count));
    }

    /// Returns how far the counts of each field are from those of `before`, wrapping.
    pub(crate) fn since(mut self, before: Self) -> Self {
        self.remove(before);
        self
    }
}

impl From<Tokens<u32>> for Tokens {
    fn from(counts: Tokens<u32>) -> Self {
        Self(counts.0.map(u64::from))
    }
}

impl<T: Copy + Default + PartialEq + fmt::Debug> fmt::Debug for Tokens<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_list().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_list_comes_back_and_sums_are_those_of_each_field(
            lists in proptest::collection::vec(proptest::collection::vec(0..3u32, 0..=MOST_FIELDS), 1..6),
        ) {
            let mut sum = Tokens::default();
            for list in &lists {
                let tokens = Tokens::from_list(list).unwrap();
                prop_assert_eq!(Tokens::from_list(tokens.as_list()), Some(tokens));
                prop_assert!((LEAST_FIELDS..=MOST_FIELDS).contains(&tokens.as_list().len()));
                sum.add(tokens);
            }
            for (field, count) in sum.first::<MOST_FIELDS>().into_iter().enumerate() {
                let expected: u32 = lists.iter().filter_map(|list| list.get(field)).sum();
                prop_assert_eq!(count, u64::from(expected));
            }
            for list in &lists {
                sum.remove(Tokens::from_list(list).unwrap());
            }
            prop_assert_eq!(sum, Tokens::default());
        }
    }

    #[test]
    fn a_field_that_is_not_there_has_no_tokens() {
        assert_eq!(Tokens::from([3_u64, 1]), Tokens::from([3, 1, 0]));
        assert_eq!(format!("{:?} {:?}", Tokens::from([3_u64, 0]), Tokens::from([3_u32, 1, 7])), "[3, 0] [3, 1, 7]");
        assert_eq!(Tokens::from_list(&[0_u64; MOST_FIELDS + 1]), None);
    }
}
