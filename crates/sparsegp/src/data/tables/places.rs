//! Places in a file that reading can start from, and how an epoch of minibatches is scattered over them.

use crate::data::batches::shuffle;
use rand::Rng;
use std::ops::Range;

/// A place between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Byte of a text file; 0 in others.
    pub byte: u64,
    /// Rows of the file before it.
    pub row: usize,
    /// How many of them are kept.
    pub kept: usize,
    /// Which file it is in, and the rows of the table before that.
    pub part: usize,
    pub first: usize,
}

/// Places noted while a file is read for the first time, some rows apart. Their number is bounded: where it is
/// reached, every second one is forgotten.
#[derive(Clone, Debug)]
pub(super) struct Places {
    list: Vec<Place>,
    /// Kept rows between two places, at least.
    apart: usize,
    /// How far apart they may get before their number may be large.
    near: usize,
}

/// Places that are kept of a small file, which cost next to nothing.
const FEW: usize = 1 << 12;
/// Places that are kept at most (12 MB).
const MOST: usize = 1 << 19;

impl Places {
    /// Creates an empty list of places. Up to 4096 of them may be nearer to each other than `near`
    /// kept rows.
    pub fn new(near: usize) -> Self {
        Self { list: Vec::new(), apart: 1, near }
    }

    /// Returns whether a place after so many kept rows should be noted.
    pub fn is_due(&self, kept: usize) -> bool {
        self.list.last().is_none_or(|last| kept >= last.kept + self.apart)
    }

    pub fn push(&mut self, place: Place) {
        self.list.push(place);
        let most = if self.apart < self.near { FEW } else { MOST };
        if self.list.len() > most {
            let mut index = 0;
            self.list.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.apart *= 2;
        }
    }

    /// Returns the parts of a file of so many kept rows that can be read separately, of at most
    /// `room` rows each, in order.
    pub fn pieces(&self, rows: usize, room: usize) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(self.list.len());
        for (i, &from) in self.list.iter().enumerate() {
            let end = self.list.get(i + 1).map_or(rows, |next| next.kept);
            let all = end.saturating_sub(from.kept);
            for skip in (0..all).step_by(room.max(1)) {
                pieces.push(Piece { from, skip, take: room.min(all - skip) });
            }
        }
        pieces
    }
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: Place,
    /// Kept rows after `from` that are not part of it.
    pub skip: usize,
    /// Its kept rows.
    pub take: usize,
}

/// Returns which of `pieces` are read together, as indices in ascending order: groups of at most
/// `room` rows. Of every run of T pieces that follow one another (T: the number of groups) each
/// group gets one, drawn at random: a stratified sample of the file, so that a group is like the
/// whole however the rows are sorted.
pub(super) fn scatter(pieces: &[Piece], room: usize, generator: &mut impl Rng) -> Vec<Vec<usize>> {
    let largest = pieces.iter().map(|piece| piece.take).max().unwrap_or(1);
    let together = (room / largest.max(1)).max(1);
    let count = pieces.len().div_ceil(together);
    let mut groups = vec![Vec::with_capacity(together); count];
    let mut order = vec![0; count];
    for start in (0..pieces.len()).step_by(count.max(1)) {
        shuffle(generator, &mut order);
        let run: Range<usize> = start..pieces.len().min(start + count);
        run.zip(&order).for_each(|(piece, &group)| groups[group].push(piece));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    fn places(rows: usize, near: usize) -> Places {
        let mut places = Places::new(near);
        for row in 0..rows {
            if places.is_due(row) {
                places.push(Place { byte: 10 * row as u64, row, kept: row, part: 0, first: 0 });
            }
        }
        places
    }

    #[test]
    fn places_get_farther_apart_as_the_file_grows() {
        assert_eq!(places(4096, 64).list.len(), 4096);
        assert_eq!(places(100_000, 64).apart, 32);
        let many = places(1_000_000, 64);
        assert_eq!((many.apart, many.list.len()), (64, 15_625));
        assert!(many.list.iter().enumerate().all(|(i, place)| place.row == 64 * i));
    }

    #[test]
    fn pieces_cover_every_row_once_and_fit() {
        for (rows, room) in [(1, 1), (989, 40), (989, 1), (100_000, 20), (100_000, 50_000)] {
            let mut next = 0;
            for piece in places(rows, 64).pieces(rows, room) {
                assert_eq!(piece.from.kept + piece.skip, next);
                assert!(piece.take > 0 && piece.take <= room);
                next += piece.take;
            }
            assert_eq!(next, rows);
        }
    }

    #[test]
    fn groups_are_stratified_samples_of_all_pieces() {
        for (rows, room) in [(989, 40), (989, 1), (100_000, 3000), (100_000, 200_000), (1, 5)] {
            let pieces = places(rows, 64).pieces(rows, room);
            let groups = scatter(&pieces, room, &mut stream(3, "scatter"));
            let mut all = groups.concat();
            all.sort_unstable();
            assert_eq!(all, (0..pieces.len()).collect::<Vec<_>>());
            let count = groups.len();
            for group in &groups {
                assert!(group.iter().map(|&i| pieces[i].take).sum::<usize>() <= room);
                // one of each run
                let runs: Vec<usize> = group.iter().map(|i| i / count).collect();
                assert!(runs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{runs:?}");
            }
            let other = scatter(&pieces, room, &mut stream(4, "scatter"));
            assert_eq!(groups == other, count == 1);
        }
    }
}
