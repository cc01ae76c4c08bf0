//! The kernel σ² exp(−τ²/2ℓ²) as a process of eight numbers.
//!
//! Its spectrum exp(−ℓ²ω²/2) is not a rational function of ω², so that no finite state has it. Hartikainen & Särkkä 2010 (§3.3) take the
//! Taylor polynomial of its inverse: 8 states leave 6·10⁻⁴ of the variance, 16 states 2·10⁻⁶, as
//! polynomials are good only at ω = 0. Here the spectrum is |W(iω)|² with W(s) = g(s − z)(s −
//! z̄)/∏(s − pⱼ)(s − p̄ⱼ), four pairs of poles and one of zeros of which the largest difference of
//! the covariances is least: below 10⁻⁶ of the variance once σ² is that at τ = 0. A square is a
//! spectrum whatever the digits of its poles.
//!
//! W in partial fractions is f = 2 Re Σ rⱼzⱼ with dzⱼ = pⱼzⱼ dt + dw, in units of ℓ, and one white noise w for all. So A turns
//! pairs of numbers (Re zⱼ, Im zⱼ) and lets them decay, and with I(q) = (e^{qΔ} − 1)/q
//!
//! ```text
//! E zᵢz̄ⱼ = −1/(pᵢ + p̄ⱼ)    E zᵢzⱼ = −1/(pᵢ + pⱼ)    Q: I(pᵢ + p̄ⱼ) and I(pᵢ + pⱼ) in the place of these
//! ```

use super::StateSpace;
use crate::linalg::RowRef;

/// pⱼ, each one of a conjugated pair: real and imaginary parts.
const POLES: [[f64; 2]; 4] = [
    [-2.069_444_494_417_511_7, 0.444_299_616_916_773_44],
    [-2.041_952_677_564_479_4, 1.350_529_490_554_853_5],
    [-1.982_237_762_138_501, 2.319_410_771_952_427],
    [-1.874_609_627_358_221_6, 3.448_969_078_550_973_2],
];
/// rⱼ.
const RESIDUES: [[f64; 2]; 4] = [
    [-0.122_504_975_053_499_05, -75.102_027_135_304_58],
    [0.387_750_003_231_463_97, 39.944_276_475_149_82],
    [-0.378_297_613_270_469_07, -10.138_085_413_881_408],
    [0.113_052_585_092_501_98, 0.851_257_119_204_152_8],
];
/// Numbers of the state.
const SIZE: usize = 2 * POLES.len();
/// Largest error of the covariance, as a part of the variance.
const ERROR: f64 = 7e-7;

/// The kernel, its parameters being σ² and ℓ.
#[derive(Clone, Copy, Debug)]
pub struct SquaredExponential {
    /// The input that is the time.
    pub input: usize,
    /// σ².
    pub variance: f64,
    /// ℓ.
    pub lengthscale: f64,
}

/// Returns (e^{qu} − 1)/q, for u → ∞ −1/q: ∫ e^{qs} ds from 0 to u, all digits of it.
fn integral([a, w]: [f64; 2], u: f64) -> [f64; 2] {
    let (re, im) = match u == f64::INFINITY {
        true => (-1.0, 0.0),
        false => {
            let half = (0.5 * w * u).sin();
            let decay = (a * u).exp();
            ((a * u).exp_m1() * (w * u).cos() - 2.0 * half * half, decay * (w * u).sin())
        }
    };
    let square = a * a + w * w;
    [(re * a + im * w) / square, (im * a - re * w) / square]
}

/// Computes E ssᵀ of the integrals of noise over a step u in units of ℓ, for σ² = 1: Q, and P for u
/// → ∞.
fn moments(u: f64, out: &mut [f64]) {
    for (i, [a, w]) in POLES.into_iter().enumerate() {
        for (j, [b, v]) in POLES.into_iter().enumerate() {
            // of zᵢz̄ⱼ, and of zᵢzⱼ
            let (c, d) = (integral([a + b, w - v], u), integral([a + b, w + v], u));
            let at = 2 * i * SIZE + 2 * j;
            out[at] = 0.5 * (c[0] + d[0]);
            out[at + 1] = 0.5 * (d[1] - c[1]);
            out[at + SIZE] = 0.5 * (d[1] + c[1]);
            out[at + SIZE + 1] = 0.5 * (c[0] - d[0]);
        }
    }
}

/// Nodes and weights of Gauss and Legendre on (−1, 1), of the positive ones.
const NODES: [[f64; 2]; 4] = [
    [0.183_434_642_495_649_8, 0.362_683_783_378_362],
    [0.525_532_409_916_329, 0.313_706_645_877_887_3],
    [0.796_666_477_413_626_7, 0.222_381_034_453_374_5],
    [0.960_289_856_497_536_3, 0.101_228_536_290_376_3],
];
/// Steps up to which these have all digits of Q.
const SHORT: f64 = 0.25;

/// Computes Q of a short step as a sum of squares ggᵀ with g = e^{Fs}(1, 0, 1, 0, …): differences
/// of exponentials would leave the numbers that are small beside the step without digits, and Q
/// without a root.
fn short(u: f64, out: &mut [f64]) {
    out.fill(0.0);
    for ([node, weight], sign) in NODES.into_iter().flat_map(|own| [(own, -1.0), (own, 1.0)]) {
        let (s, mut g) = (0.5 * u * (1.0 + sign * node), [0.0; SIZE]);
        for (j, [a, w]) in POLES.into_iter().enumerate() {
            let ((sin, cos), decay) = ((w * s).sin_cos(), (a * s).exp());
            (g[2 * j], g[2 * j + 1]) = (decay * cos, decay * sin);
        }
        for i in 0..SIZE {
            let scaled = 0.5 * u * weight * g[i];
            (0..SIZE).for_each(|j| out[i * SIZE + j] += scaled * g[j]);
        }
    }
}

impl SquaredExponential {
    fn scaled(&self, step: f64) -> f64 {
        step / self.lengthscale
    }
}

impl StateSpace for SquaredExponential {
    fn size(&self) -> usize {
        SIZE
    }

    fn blocks(&self) -> Vec<usize> {
        vec![2; POLES.len()]
    }

    fn stationary(&self, out: &mut [f64]) {
        moments(f64::INFINITY, out);
        out.iter_mut().for_each(|p| *p *= self.variance);
    }

    fn transition(&self, step: f64, out: &mut [f64]) {
        out.fill(0.0);
        let u = self.scaled(step);
        for (j, [a, w]) in POLES.into_iter().enumerate() {
            let (sin, cos) = (w * u).sin_cos();
            let decay = (a * u).exp();
            let at = 2 * j * (SIZE + 1);
            // a step so long that angles have no digits
            let (sin, cos) = if decay == 0.0 { (0.0, 0.0) } else { (decay * sin, decay * cos) };
            (out[at], out[at + 1]) = (cos, -sin);
            (out[at + SIZE], out[at + SIZE + 1]) = (sin, cos);
        }
    }

    fn noise(&self, step: f64, out: &mut [f64]) {
        match self.scaled(step) {
            u if u <= SHORT => short(u, out),
            // what is left after e^{−40} is nothing, and angles have digits until then
            u if u > 20.0 => moments(f64::INFINITY, out),
            u => moments(u, out),
        }
        out.iter_mut().for_each(|q| *q *= self.variance);
    }

    fn times(&self, all: &mut Vec<usize>) {
        all.push(self.input);
    }

    fn output(&self, _: RowRef<'_, f64>, out: &mut [f64]) {
        for (j, [re, im]) in RESIDUES.into_iter().enumerate() {
            (out[2 * j], out[2 * j + 1]) = (2.0 * re, -2.0 * im);
        }
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        let mut unit = [0.0; SIZE * SIZE];
        moments(f64::INFINITY, &mut unit);
        params[0] += bar.iter().zip(&unit).map(|(b, p)| b * p).sum::<f64>();
    }

    /// Uses ∂A/∂ℓ = −(u/ℓ)FA with F of blocks (a, −w; w, a).
    fn pull_transition(&self, step: f64, a: &[f64], bar: &[f64], params: &mut [f64]) {
        let mut along = 0.0;
        for (j, [decay, turn]) in POLES.into_iter().enumerate() {
            let at = 2 * j * (SIZE + 1);
            for column in 0..2 {
                let (above, below) = (a[at + column], a[at + SIZE + column]);
                along += bar[at + column] * (decay * above - turn * below);
                along += bar[at + SIZE + column] * (turn * above + decay * below);
            }
        }
        params[1] -= self.scaled(step) / self.lengthscale * along;
    }

    fn error(&self) -> f64 {
        ERROR
    }

    fn remarks(&self, all: &mut Vec<String>) {
        all.push(format!(
            "`rbf` is a state of {SIZE} numbers here, which leaves up to {ERROR:.0e} of its variance: `exact` on fewer rows, and sparse \
             methods such as titsias2025, have all of it"
        ));
    }
}
