//! Blocks of rows that have neighbours in common.

/// What a block of n rows costs, about, in units of what takes n² times: filling its covariances with their way back, and
/// the systems of every row that responds; the factorisation takes n³.
const FILLING: u64 = 60;
const RESPONDING: u64 = 4;

/// Rows in a block, at most, for every neighbour of one.
const LARGEST: usize = 4;

/// Rows together, by their places in the order, ascending: all of them, and those that respond.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) members: Vec<u32>,
    pub(super) respond: Vec<u32>,
}

/// No group.
const NONE: u32 = u32::MAX;

fn cost(members: usize, respond: usize) -> u64 {
    let n = members as u64;
    n * n * (n + FILLING + RESPONDING * respond as u64)
}

/// Puts both lists in one, ascending, without repetitions.
fn union(a: &[u32], b: &[u32], out: &mut Vec<u32>) {
    out.clear();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (own, other) = (a[i], b[j]);
        out.push(own.min(other));
        i += usize::from(own <= other);
        j += usize::from(other <= own);
    }
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
}

/// The place of a row in the order, and those of its neighbours, nearest first.
pub(super) type Seen = (u32, Vec<u32>);

/// Returns every row with its neighbours.
pub(super) fn single(rows: &[Seen]) -> Vec<Group> {
    let of = |(rank, near): &Seen| {
        let mut members = near.clone();
        members.push(*rank);
        members.sort_unstable();
        Group { members, respond: vec![*rank] }
    };
    rows.iter().map(of).collect()
}

/// Joins groups where one factorisation of both costs less than two (Guinness 2018, §3.3): every row looks at its neighbours,
/// the nearest first. Rows keep the neighbours that they have, and get those of their group too, so that the approximation
/// becomes better. (Where rows come with others that are near, all that is looked at is in cache.) Neighbours that are not
/// among the rows, of which there are `count` in the order, are in no group.
pub(super) fn joined(rows: &[Seen], most: usize, count: usize) -> Vec<Group> {
    let mut groups = single(rows);
    let mut of = vec![NONE; count];
    rows.iter().enumerate().for_each(|(group, (rank, _))| of[*rank as usize] = group as u32);
    let most_members = LARGEST * (most + 1);
    let mut both = Vec::new();
    for away in 0..most {
        for (rank, near) in rows {
            let Some(other) = near.get(away) else { continue };
            let (a, b) = (of[*rank as usize] as usize, of[*other as usize] as usize);
            if a == b || b == NONE as usize {
                continue;
            }
            let [x, y] = [&groups[a], &groups[b]];
            union(&x.members, &y.members, &mut both);
            let respond = x.respond.len() + y.respond.len();
            let apart =
                cost(x.members.len(), x.respond.len()) + cost(y.members.len(), y.respond.len());
            if both.len() > most_members || cost(both.len(), respond) > apart {
                continue;
            }
            let (kept, gone) = (a.min(b), a.max(b));
            let gone = std::mem::take(&mut groups[gone]);
            gone.respond.iter().for_each(|rank| of[*rank as usize] = kept as u32);
            groups[kept].members.clone_from(&both);
            groups[kept].respond.extend(gone.respond);
        }
    }
    groups.retain(|group| !group.respond.is_empty());
    groups.iter_mut().for_each(|group| group.respond.sort_unstable());
    groups
}
