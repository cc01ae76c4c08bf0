//! tmp
use sparsegp::*;
use std::ops::ControlFlow;
use std::sync::Arc;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = data::Table::open(&a[1]).unwrap();
    let sel = t.select(&data::Selection::targets(["y"])).unwrap();
    let mask = Arc::new(data::Mask::open(&a[2]).unwrap());
    let tr = sel.clone().rows_where(mask.clone(), false).read_all().unwrap();
    let ds = fit::Dataset::from_loaded(tr, true).unwrap();
    let eng = engine::Cpu::default();
    let mut o = fit::FitOptions {
        method: a[3].clone(),
        inducing: Some(a[4].parse().unwrap()),
        ..Default::default()
    };
    if a.len() > 6 {
        if a[6] != "-" {
            o.freeze.push(a[6].clone());
        }
    }
    if a.len() > 7 {
        o.pilot = a[7].parse().unwrap();
    }
    o.train.max_iterations = a[5].parse().unwrap();
    let f = fit::fit(&ds, &o, &eng, &|| false, &mut |_, p| {
        if p.iteration % 20 == 0 {
            println!(
                "{} {} {:.4} {:.3e} {:.1}s",
                p.iteration, p.evaluations, p.objective, p.gradient_norm, p.seconds
            );
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let r = f.report.as_ref().unwrap();
    println!(
        "{} it {} ev {} fail {} obj {:.3} {:.1}s; {:?}",
        r.stopped, r.iterations, r.evaluations, r.failures, r.objective, r.seconds, f.warnings
    );
    let mut m = metrics::Metrics::against_trivial(&f.target_mean, &f.target_variance).unwrap();
    for b in sel.rows_where(mask, true).blocks(1000, Some(&f.scaler)).unwrap() {
        let b = b.unwrap();
        let (mu, v) = f.predict_y(b.x.as_ref()).unwrap();
        m.add(b.y.as_ref(), mu.as_ref(), v.as_ref()).unwrap();
    }
    let s = m.finish().unwrap();
    println!(
        "std ll {:.4} rmse {:.4} msll {:?}",
        -s.nlpd + f.scaler.y_scale[0].ln(),
        s.rmse / f.scaler.y_scale[0],
        s.msll
    );
    io::save(&f, std::path::Path::new("/tmp/m.safetensors")).unwrap();
    let g = io::load(std::path::Path::new("/tmp/m.safetensors")).unwrap();
    let x = linalg::Mat::<f64>::from_fn(3, f.input_names.len(), |i, j| (i as f64 + j as f64).sin());
    println!("{:?} {:?}", f.predict_y(x.as_ref()).unwrap(), g.predict_y(x.as_ref()).unwrap());
}
