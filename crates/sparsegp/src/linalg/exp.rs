//! Element-wise functions compiled for the machine at hand.
//!
//! The loops are plain scalar code without branches or calls, which the compiler turns into vectors;
//! [`dispatch`] compiles them for AVX-512, AVX2 and the baseline and picks at run time.

use pulp::{Arch, Simd, WithSimd};

/// A loop that wants to be compiled for every instruction set. `FMA` says whether fused
/// multiply-add is one instruction (else it would be a slow library call).
pub trait Vectorised {
    /// What the loop returns.
    type Output;
    /// Runs the loop; implementations are `#[inline(always)]`.
    fn run<const FMA: bool>(self) -> Self::Output;
}

struct Adapter<V>(V);

impl<V: Vectorised> WithSimd for Adapter<V> {
    type Output = V::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> V::Output {
        if S::IS_SCALAR { self.0.run::<false>() } else { self.0.run::<true>() }
    }
}

/// Runs a loop with the best instruction set of this machine.
pub fn dispatch<V: Vectorised>(v: V) -> V::Output {
    Arch::new().dispatch(Adapter(v))
}

/// Returns a·b + c, fused where that is one instruction.
#[inline(always)]
pub fn mul_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Returns eˣ, relative error below 4 units in the last place for x in [−708, 709]; arguments
/// outside are moved to the nearer end (so −∞ gives 3e-308); NaN stays NaN.
#[inline(always)]
pub fn exp<const FMA: bool>(x: f64) -> f64 {
    // 1.5·2⁵²: adding it rounds to an integer, which then sits in the low bits
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x < -708.0 { -708.0 } else { x };
    let x = if x > 709.0 { 709.0 } else { x };
    let shifted = mul_add::<FMA>(x, std::f64::consts::LOG2_E, MAGIC);
    let k = shifted - MAGIC;
    let r = mul_add::<FMA>(k, -LN2_HI, x);
    let r = mul_add::<FMA>(k, -LN2_LO, r);
    // Taylor polynomial of degree 12 on |r| ≤ ½ ln 2 (remainder 2e-16), Estrin's order
    let r2 = r * r;
    let r4 = r2 * r2;
    let r8 = r4 * r4;
    let p01 = r + 1.0;
    let p23 = mul_add::<FMA>(r, 1.0 / 6.0, 0.5);
    let p45 = mul_add::<FMA>(r, 1.0 / 120.0, 1.0 / 24.0);
    let p67 = mul_add::<FMA>(r, 1.0 / 5040.0, 1.0 / 720.0);
    let p89 = mul_add::<FMA>(r, 1.0 / 362_880.0, 1.0 / 40_320.0);
    let p1011 = mul_add::<FMA>(r, 1.0 / 39_916_800.0, 1.0 / 3_628_800.0);
    let q0 = mul_add::<FMA>(r2, p23, p01);
    let q1 = mul_add::<FMA>(r2, p67, p45);
    let q2 = mul_add::<FMA>(r2, p1011, p89);
    let q2 = mul_add::<FMA>(r4, 1.0 / 479_001_600.0, q2);
    let low = mul_add::<FMA>(r4, q1, q0);
    let p = mul_add::<FMA>(r8, q2, low);
    // multiply by 2ᵏ through the exponent bits
    f64::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 52))
}

/// Returns log x for x > 0 (x ≥ 2⁻¹⁰²²), relative error below 4 units in the last place; +∞ gives
/// 1024 log 2; NaN stays NaN.
#[inline(always)]
pub fn ln<const FMA: bool>(x: f64) -> f64 {
    ln_with_rest::<FMA>(x, 0.0)
}

/// Returns log(1 + x) for x ≥ 0, relative error below 4 units in the last place; above 10³⁰⁰ that
/// of 10³⁰⁰.
#[inline(always)]
pub fn ln_1p<const FMA: bool>(x: f64) -> f64 {
    let x = if x > 1e300 { 1e300 } else { x };
    // what the rounding of 1 + x loses is added as its relative change
    let u = 1.0 + x;
    ln_with_rest::<FMA>(u, (x - (u - 1.0)) / u)
}

/// Returns log x + rest for a rest that is small against log x.
#[inline(always)]
pub(crate) fn ln_with_rest<const FMA: bool>(x: f64, rest: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    // x = 2ᵉm with √½ ≤ m < √2: the exponent, counted from √½, and what is left
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits();
    let raised = bits.wrapping_sub(SQRT_HALF).wrapping_add(1 << 62) >> 52;
    let e = f64::from_bits(MAGIC.to_bits().wrapping_add(raised)) - MAGIC - 1024.0;
    let m = f64::from_bits(bits.wrapping_sub(raised << 52).wrapping_add(1 << 62));
    // log m = 2 artanh s = 2s(1 + z/3 + z²/5 + …), s = (m − 1)/(m + 1), z = s² ≤ 0.0295
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut q = 2.0 / 21.0;
    q = mul_add::<FMA>(q, z, 2.0 / 19.0);
    q = mul_add::<FMA>(q, z, 2.0 / 17.0);
    q = mul_add::<FMA>(q, z, 2.0 / 15.0);
    q = mul_add::<FMA>(q, z, 2.0 / 13.0);
    q = mul_add::<FMA>(q, z, 2.0 / 11.0);
    q = mul_add::<FMA>(q, z, 2.0 / 9.0);
    q = mul_add::<FMA>(q, z, 2.0 / 7.0);
    q = mul_add::<FMA>(q, z, 2.0 / 5.0);
    q = mul_add::<FMA>(q, z, 2.0 / 3.0);
    let small = mul_add::<FMA>(e, LN2_LO, rest);
    let log_m = mul_add::<FMA>(s * z, q, 2.0 * s);
    let sum = mul_add::<FMA>(e, LN2_HI, log_m + small);
    if x.is_nan() { x } else { sum }
}

/// Returns Mills' ratio of the standard normal, (1 − Φ(t))/φ(t), relative error below 4 units in
/// the last place for t ≥ 0; above 10¹⁰ that of 10¹⁰; NaN stays NaN.
#[inline(always)]
pub fn mills<const FMA: bool>(t: f64) -> f64 {
    // (1 + t) R(t) as a polynomial in u = (t − 5)/(t + 5), which has [−1, 1] for all t ≥ 0 (as Shepherd & Laframboise 1981
    // do with erfc): the Chebyshev series of degree 24, computed with 50 digits
    const P: [f64; 25] = [
        1.156_848_628_291_894_6,
        -0.229_487_538_252_113_15,
        0.077_781_598_868_735_54,
        0.025_072_179_301_638_8,
        -0.066_177_600_778_993_4,
        0.061_505_045_840_186_5,
        -0.038_026_592_187_762_366,
        0.016_348_231_281_029_38,
        -0.004_201_290_310_663_574,
        1.953_063_837_079_078_6e-5,
        0.000_457_043_818_200_079_54,
        -0.000_134_374_278_557_113_5,
        -2.480_545_844_721_45e-5,
        2.270_961_270_923_768e-5,
        -1.772_343_818_560_181_8e-7,
        -3.277_287_633_208_862_5e-6,
        3.219_713_160_904_263_5e-7,
        4.919_962_331_478_311e-7,
        -6.738_323_465_177_555e-8,
        -7.758_520_236_786_128e-8,
        1.008_289_564_626_377_5e-8,
        1.103_207_115_157_345_1e-8,
        -1.084_692_528_887_523_6e-9,
        -9.564_832_934_710_976e-10,
        6.288_377_855_523_932e-11,
    ];
    let t = if t > 1e10 { 1e10 } else { t };
    let u = (t - 5.0) / (t + 5.0);
    // even and odd powers apart: two chains of half the length
    let u2 = u * u;
    let (mut even, mut odd) = (P[24], P[23]);
    let mut k = 22;
    while k > 1 {
        even = mul_add::<FMA>(even, u2, P[k]);
        odd = mul_add::<FMA>(odd, u2, P[k - 1]);
        k -= 2;
    }
    even = mul_add::<FMA>(even, u2, P[0]);
    mul_add::<FMA>(odd, u, even) / (1.0 + t)
}

/// Largest angle whose multiple of ½π is taken off without rounding.
const LARGEST_ANGLE: f64 = 1e6;

/// Returns sin x and cos x for |x| ≤ 10⁶, absolute error below 3·10⁻¹⁶.
#[inline(always)]
pub fn sin_cos<const FMA: bool>(x: f64) -> (f64, f64) {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    // ½π in parts of 33 bits, by which a multiple k < 2²⁰ is exact, and the rest
    const HALF_PI: [f64; 3] =
        [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
    let shifted = mul_add::<FMA>(x, std::f64::consts::FRAC_2_PI, MAGIC);
    let k = shifted - MAGIC;
    let r = mul_add::<FMA>(k, -HALF_PI[0], x);
    let r = mul_add::<FMA>(k, -HALF_PI[1], r);
    let r = mul_add::<FMA>(k, -HALF_PI[2], r);
    // Taylor polynomials of degree 17 and 16 on |r| ≤ ¼π (remainders 9e-20 and 2e-18)
    let z = r * r;
    let mut s = 1.0 / 355_687_428_096_000.0;
    s = mul_add::<FMA>(s, z, -1.0 / 1_307_674_368_000.0);
    s = mul_add::<FMA>(s, z, 1.0 / 6_227_020_800.0);
    s = mul_add::<FMA>(s, z, -1.0 / 39_916_800.0);
    s = mul_add::<FMA>(s, z, 1.0 / 362_880.0);
    s = mul_add::<FMA>(s, z, -1.0 / 5040.0);
    s = mul_add::<FMA>(s, z, 1.0 / 120.0);
    s = mul_add::<FMA>(s, z, -1.0 / 6.0);
    let sin = mul_add::<FMA>(s * z, r, r);
    let mut c = 1.0 / 20_922_789_888_000.0;
    c = mul_add::<FMA>(c, z, -1.0 / 87_178_291_200.0);
    c = mul_add::<FMA>(c, z, 1.0 / 479_001_600.0);
    c = mul_add::<FMA>(c, z, -1.0 / 3_628_800.0);
    c = mul_add::<FMA>(c, z, 1.0 / 40_320.0);
    c = mul_add::<FMA>(c, z, -1.0 / 720.0);
    c = mul_add::<FMA>(c, z, 1.0 / 24.0);
    c = mul_add::<FMA>(c, z, -0.5);
    let cos = mul_add::<FMA>(c, z, 1.0);
    // which quarter of the circle: k sits in the low bits
    let quarter = shifted.to_bits();
    let (sin, cos) = if quarter & 1 == 0 { (sin, cos) } else { (cos, sin) };
    let sign = |v: f64, bit: u64| f64::from_bits(v.to_bits() ^ ((bit & 2) << 62));
    (sign(sin, quarter), sign(cos, quarter.wrapping_add(1)))
}

/// Computes sines of angles, whose place their cosines take.
pub fn sin_cos_in_place(angles: &mut [f64], sin: &mut [f64]) {
    struct Loop<'a>(&'a mut [f64], &'a mut [f64]);
    impl Vectorised for Loop<'_> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for (angle, sin) in self.0.iter_mut().zip(self.1) {
                (*sin, *angle) = sin_cos::<FMA>(*angle);
            }
        }
    }
    if angles.iter().all(|angle| angle.abs() <= LARGEST_ANGLE) {
        return dispatch(Loop(angles, sin));
    }
    angles.iter_mut().zip(sin).for_each(|(angle, sin)| (*sin, *angle) = angle.sin_cos());
}

/// Computes eˣ in place.
pub fn exp_in_place(values: &mut [f64]) {
    struct Loop<'a>(&'a mut [f64]);
    impl Vectorised for Loop<'_> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for v in self.0 {
                *v = exp::<FMA>(*v);
            }
        }
    }
    dispatch(Loop(values));
}
