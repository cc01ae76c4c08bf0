//! What must not allocate does not.

use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory};
use sparsegp::linalg::Mat;

#[test]
fn minibatches_from_memory_allocate_only_at_first() {
    let n = 1003;
    let mut data = InMemory::new(
        Mat::from_fn(n, 4, |i, j| (i + 7 * j) as f64),
        Mat::from_fn(n, 2, |i, j| (i * (j + 1)) as f64),
    )
    .unwrap();
    data.weights = vec![0.5; n];
    data.extra = vec![2.0; n];
    let mut batches = ShuffledInMemory::new(&data, 100, 3).unwrap();
    let mut batch = Minibatch::new();
    let first = allocation_counter::measure(|| batches.next(&mut batch).unwrap());
    assert!(first.count_total > 0, "the counter does not count");
    // To the end of the twelfth epoch: the number of digits in an epoch's name grows too.
    let later = allocation_counter::measure(|| {
        for _ in 0..12 * batches.per_epoch() {
            batches.next(&mut batch).unwrap();
        }
    });
    assert_eq!((later.count_total, batches.position().epoch), (0, 12));
}
