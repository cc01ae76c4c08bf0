//! Likelihoods with local variables: coordinate ascent, stochastic steps, chains.

use crate::support::{Folder, bundled, close, column, number};

const HEART: &str = "fit heart.csv --target y --classes --split 0.2 --seed 3";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("heart.csv", bundled("heart.csv.gz"));
    folder
}

#[test]
fn coordinate_ascent_and_stochastic_steps_learn_what_svgp_learns() {
    let folder = folder();
    let quick = "--pilot 0 --inducing 30 --max-iterations 10";
    for (method, more) in [
        ("cavi", quick),
        ("cavi-full", "--pilot 0 --max-iterations 10"),
        ("svi", "--inducing 30 --epochs 10"),
    ] {
        let fitted = folder.json(&format!("{HEART} --method {method} {more} -o {method}.gp"));
        // the logistic likelihood is the default where one with local variables is needed
        assert!(fitted.to_string().contains("\"link\":\"logit\""), "{fitted}");
        let scores = folder.json(&format!("score {method}.gp heart.csv"));
        let accuracy = number(&scores, "/scores/overall/accuracy");
        assert!(accuracy > 0.8, "{method}: {accuracy}");
    }
    let several = folder.ok(&format!("{HEART} --method cavi --likelihood svm {quick}"));
    assert!(several.out.contains("svm"), "{}", several.out);
}

#[test]
fn chains_are_kept_with_the_model() {
    let folder = folder();
    // what counts comes after the training
    let quick = "--pilot 0 --max-iterations 3";
    for (method, more) in [
        ("gibbs", ""),
        ("gibbs-sparse", "--inducing 30"),
        ("gibbs-sparse", "--inducing 30 --law fitc"),
    ] {
        let chains = format!("--chains 2 --draws 40 --burn-in 20 --thin 2 {quick}");
        let fitted = folder.ok(&format!("{HEART} --method {method} {more} {chains} -o m.gp"));
        assert!(fitted.out.contains("2 of 40 draws"), "{}", fitted.out);
        assert!(fitted.out.contains("split R̂"), "{}", fitted.out);
        assert!(fitted.err.contains("sweep 100 of 100"), "{}", fitted.err);
        folder.ok("predict m.gp heart.csv -o one.csv");
        // the same draws from the same seed, whatever the number of threads
        folder.ok(&format!("{HEART} --method {method} {more} {chains} -o n.gp --threads 1"));
        folder.ok("predict n.gp heart.csv -o two.csv");
        assert_eq!(folder.read("one.csv"), folder.read("two.csv"), "{method} {more}");
        let p = column(&folder.read("one.csv"), "p_1");
        assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
        let mixing = folder.json("inspect m.gp");
        let mixing = mixing.pointer("/training/mixing").unwrap_or_else(|| panic!("{mixing}"));
        close(number(mixing, "/draws"), 40.0, 1e-12);
    }
}

#[test]
fn chains_of_a_series_are_kept_with_the_model() {
    let folder = folder();
    let wave = |i: u32| {
        let wild = if i % 13 == 5 { 4.0 } else { 0.2 };
        (0.07 * f64::from(i)).sin() + wild * (2.3 * f64::from(i)).sin()
    };
    let row = |i: u32| format!("{},{}\n", 0.5 * f64::from(i), wave(i));
    folder.write(
        "series.csv",
        ["t,y\n".to_owned()].into_iter().chain((0..120).map(row)).collect::<String>(),
    );
    let fit = "fit series.csv --target y --likelihood student-t --kernel matern32 --pilot 0 --max-iterations 5";
    let chains = "--method gibbs-markov --chains 2 --draws 40 --burn-in 20";
    let fitted = folder.ok(&format!("{fit} {chains} -o m.gp"));
    assert!(fitted.out.contains("split R̂"), "{}", fitted.out);
    folder.ok("predict m.gp series.csv -o one.csv");
    folder.ok(&format!("{fit} {chains} --threads 1 -o n.gp"));
    folder.ok("predict n.gp series.csv -o two.csv");
    assert_eq!(folder.read("one.csv"), folder.read("two.csv"));
    let means = column(&folder.read("one.csv"), "mean");
    assert!(means.iter().all(|mean| mean.abs() < 2.0), "{means:?}");
    folder.ok("forecast m.gp series.csv --horizon 10 -o next.csv");
    folder.refused(
        2,
        &format!("{fit} {chains} --sample-hyperparameters"),
        &["--sample-hyperparameters", "gibbs"],
    );
    // before a row is read or written
    let words = &["taking up new rows", "`gibbs-markov`"];
    folder.write("later.csv", "t,y\n60.5,0.1\n61,0.2\n");
    folder.refused(1, "update m.gp later.csv -o u.gp", words);
    folder.refused(1, "follow m.gp later.csv --predictions before.csv -o u.gp", words);
    assert!(!folder.path("before.csv").exists() && !folder.path("u.gp").exists());
    folder.refused(
        1,
        &format!("{HEART} --method gibbs-markov --kernel matern32"),
        &["13 inputs", "state-space"],
    );
}

#[test]
fn paths_and_slices_sample_any_likelihood() {
    let folder = folder();
    folder.write("yacht.csv", bundled("yacht.csv.gz"));
    // what counts comes after the training
    let chains = "--chains 2 --draws 10 --burn-in 12 --pilot 0 --max-iterations 3";
    for (table, method, more) in [
        (
            "heart.csv --classes",
            "nuts",
            "--likelihood 'bernoulli(link=probit)' --kernel 'rbf(ard=false)'",
        ),
        ("heart.csv --classes", "ess", "--kernel 'rbf(ard=false)'"),
        ("heart.csv --classes", "hmc", "--kernel 'rbf(ard=false)'"),
        ("yacht.csv", "nuts", "--sample-hyperparameters"),
        ("yacht.csv", "hmc", "--likelihood student-t --kernel 'rbf(ard=false)'"),
        ("yacht.csv", "nuts-augmented", "--likelihood student-t --kernel 'rbf(ard=false)'"),
        ("yacht.csv", "hmc-augmented", "--likelihood laplace --kernel 'rbf(ard=false)'"),
        ("heart.csv --classes", "metropolis", "--kernel 'rbf(ard=false)'"),
    ] {
        let fit = format!("fit {table} --target y --split 0.85 --method {method} {more} {chains}");
        let fitted = folder.ok(&format!("{fit} -o m.gp"));
        assert!(fitted.out.contains("2 of 10 draws"), "{}", fitted.out);
        assert_eq!(more.contains("hyper"), fitted.out.contains("likelihood.variance "), "{fit}");
        let data = table.split(' ').next().unwrap_or(table);
        folder.ok(&format!("predict m.gp {data} -o one.csv"));
        folder.ok(&format!("{fit} -o n.gp --threads 1"));
        folder.ok(&format!("predict n.gp {data} -o two.csv"));
        assert_eq!(folder.read("one.csv"), folder.read("two.csv"), "{fit}");
    }
    let ess = "fit yacht.csv --target y --method ess --sample-hyperparameters --max-iterations 2";
    folder.refused(
        2,
        ess,
        &["--sample-hyperparameters", "methods with it: gibbs, gibbs-sparse, nuts"],
    );
    for method in ["metropolis", "hmc-augmented --likelihood laplace"] {
        let fit = format!("fit yacht.csv --target y --method {method} --max-iterations 2");
        folder.refused(2, &format!("{fit} --sample-hyperparameters"), &["methods with it"]);
    }
    let plain = "fit yacht.csv --target y --method nuts-augmented --max-iterations 2";
    folder.refused(1, plain, &["Gaussian already"]);
    let law = "fit yacht.csv --target y --method nuts --law fitc";
    folder.refused(2, law, &["--law", "gibbs-sparse"]);
}

#[test]
fn draws_are_joint_and_in_the_datas_units() {
    let folder = folder();
    folder.write("yacht.csv", bundled("yacht.csv.gz"));
    folder.ok("fit yacht.csv --target y --split 0.3 --max-iterations 20 -o m.gp");
    folder.ok("predict m.gp yacht.csv -o p.csv");
    let run = folder.ok("sample m.gp yacht.csv --draws 200 --id y -o d.csv.gz");
    assert!(run.out.contains("200 draws for 308 rows"), "{}", run.out);
    folder.ok("sample m.gp yacht.csv --draws 200 --id y -o d.csv");
    let (text, predicted) = (folder.read("d.csv"), folder.read("p.csv"));
    let columns: Vec<Vec<f64>> = (1..=200).map(|i| column(&text, &i.to_string())).collect();
    let (mean, sd) = (column(&predicted, "mean"), column(&predicted, "sd"));
    for i in [0, 100, 307] {
        let own: f64 = columns.iter().map(|draw| draw[i]).sum::<f64>() / 200.0;
        assert!((own - mean[i]).abs() < 4.5 * sd[i] / 200f64.sqrt(), "{i}: {own} {}", mean[i]);
    }
    // the same seed, the same draws; another one, others
    folder.ok("sample m.gp yacht.csv --draws 3 -o a.csv");
    folder.ok("sample m.gp yacht.csv --draws 3 -o b.csv");
    folder.ok("sample m.gp yacht.csv --draws 3 --seed 1 -o c.csv");
    assert_eq!(folder.read("a.csv"), folder.read("b.csv"));
    assert_ne!(folder.read("a.csv"), folder.read("c.csv"));
    let latent = folder.ok("sample m.gp yacht.csv --draws 2 --latent");
    assert_eq!(latent.out.lines().count(), 309);
    // of classes the labels
    folder.ok(&format!("{HEART} --inducing 20 --max-iterations 5 -o h.gp"));
    let labels = folder.ok("sample h.gp heart.csv --draws 4");
    assert!(labels.out.lines().skip(1).all(|l| l.split(',').all(|c| c == "0" || c == "1")));
    let keep = "sample m.gp yacht.csv --missing keep";
    folder.refused(2, keep, &["--missing keep is for `predict`"]);
}

#[test]
fn hyperparameters_are_sampled_on_request() {
    let folder = folder();
    let chains =
        "--chains 2 --draws 40 --burn-in 20 --sample-hyperparameters --pilot 0 --max-iterations 3";
    for (method, more) in
        [("gibbs", "--kernel 'rbf(ard=false)'"), ("gibbs-sparse", "--inducing 20 --kernel rbf")]
    {
        let fit = format!("{HEART} --method {method} {more} {chains}");
        let fitted = folder.ok(&format!("{fit} -o m.gp"));
        for word in ["kernel.variance", "kernel.lengthscales", "effective draws", "lognormal"] {
            assert!(fitted.out.contains(word), "{word}: {}", fitted.out);
        }
        assert!(format!("{}{}", fitted.out, fitted.err).contains("no prior was given for"));
        let report = folder.json("inspect m.gp");
        let sampled = report.pointer("/training/mixing/hyperparameters").unwrap();
        let sampled = sampled.as_array().unwrap();
        assert_eq!(sampled[0]["path"], "kernel.variance", "{report}");
        for own in sampled {
            let size = number(own, "/effective");
            assert!(number(own, "/deviation") > 0.0 && size > 1.0, "{own}");
        }
        // the file has everything that predictions need, and the same seed gives the same draws
        folder.ok("predict m.gp heart.csv -o one.csv");
        folder.ok(&format!("{fit} -o n.gp --threads 1"));
        folder.ok("predict n.gp heart.csv -o two.csv");
        assert_eq!(folder.read("one.csv"), folder.read("two.csv"), "{method} {more}");
        let p = column(&folder.read("one.csv"), "p_1");
        assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
    }
    folder.refused(
        2,
        &format!("{HEART} --method cavi --sample-hyperparameters"),
        &["--sample-hyperparameters", "gibbs"],
    );
    let frozen = "--freeze kernel --freeze mean";
    folder.refused(1, &format!("{HEART} --method gibbs {frozen} {chains}"), &["frozen"]);
}

#[test]
fn chains_resume_from_their_checkpoint() {
    let folder = folder();
    let quick = "--pilot 0 --max-iterations 3";
    let fit = format!("{HEART} --method gibbs --chains 2 --draws 30 --burn-in 10 {quick}");
    folder.ok(&format!("{fit} -o whole.gp"));
    folder.ok("predict whole.gp heart.csv -o whole.csv");
    // fewer draws stand for an interruption
    let short = fit.replace("--draws 30", "--draws 12");
    folder.ok(&format!("{short} --checkpoint run.gp --checkpoint-every 0"));
    let rest = folder.ok(&format!("{fit} --checkpoint run.gp -o rest.gp"));
    assert!(rest.err.contains("resuming from it"), "{}", rest.err);
    folder.ok("predict rest.gp heart.csv -o rest.csv");
    assert_eq!(folder.read("rest.csv"), folder.read("whole.csv"));
    folder.refused(
        1,
        &format!("{fit} --thin 2 --checkpoint run.gp"),
        &["not a checkpoint", "chains"],
    );
}

#[test]
fn what_has_no_sense_is_refused() {
    let folder = folder();
    folder.refused(
        1,
        &format!("{HEART} --method cavi --likelihood bernoulli"),
        &["no local variables", "link=logit", "student-t"],
    );
    folder.refused(2, &format!("{HEART} --method cavi --draws 10"), &["--draws", "gibbs"]);
    folder.refused(2, &format!("{HEART} --method gibbs --law fitc"), &["--law", "gibbs-sparse"]);
    folder.refused(2, &format!("{HEART} --method gibbs --draws 0"), &["--draws"]);
    for option in ["--natural-rate", "--e-steps"] {
        let svi = format!("{HEART} --method svi {option} 1");
        folder.refused(2, &svi, &[option, "--method svi", "tsvgp"]);
    }
    folder.write("w.csv", "x,y,w\n1,0.3,1\n2,0.5,2\n3,0.1,1\n4,0.7,1\n");
    folder.refused(
        1,
        "fit w.csv --target y --weight w --likelihood laplace --method gibbs",
        &["weights"],
    );
}

#[test]
fn some_of_the_classes_move_in_a_step() {
    let folder = Folder::new();
    let rows: String = (0..80)
        .map(|i| {
            let x = f64::from(i) / 20.0;
            format!("{x},{}\n", ["a", "b", "c", "d"][(x as usize) % 4])
        })
        .collect();
    folder.write("c.csv", format!("x,y\n{rows}"));
    let fit =
        "fit c.csv --target y --likelihood 'logistic-softmax(classes=4)' --inducing 12 --batch 40";
    let steps = "--method svi --classes-per-step 2 --epochs 150";
    folder.ok(&format!("{fit} {steps} -o some.gp"));
    let scores = folder.json("score some.gp c.csv");
    let text = scores.to_string();
    assert!(text.contains("accuracy"), "{text}");
    folder.ok("predict some.gp c.csv -o p.csv");
    let labels = crate::support::texts(&folder.read("p.csv"), "label");
    let hits = labels.iter().enumerate().filter(|(i, l)| **l == ["a", "b", "c", "d"][i / 20 % 4]);
    assert!(hits.count() > 72, "{labels:?}");
    for (method, words) in [
        ("svgp --classes-per-step 2", ["--classes-per-step", "methods with it: svi"]),
        ("cavi --classes-per-step 2", ["--batch", "--method cavi"]),
        ("svi --classes-per-step 0", ["--classes-per-step", "0"]),
    ] {
        folder.refused(2, &format!("{fit} --method {method}"), &words);
    }
    folder.refused(1, &format!("{fit} --method svi --classes-per-step 5"), &["between 1 and 4"]);
}

/// Quantiles are those of the mixture over draws: whole numbers at which it reaches the level, and near the edge of what the
/// draws allow.
#[test]
fn quantiles_are_of_the_draws() {
    let folder = Folder::new();
    let rows: String = (0..60)
        .map(|i| {
            let x = f64::from(i) / 10.0;
            format!("{x},{}\n", (4.0 + 3.0 * x.sin() + f64::from(i * 7 % 3)).floor())
        })
        .collect();
    folder.write("n.csv", format!("x,y\n{rows}"));
    let chains = "--method gibbs --chains 2 --draws 60 --burn-in 30";
    folder.ok(&format!("fit n.csv --target y --likelihood negative-binomial {chains} -o n.gp"));
    folder.ok("predict n.gp n.csv --quantiles 0.1,0.5,0.9 -o p.csv");
    let predicted = folder.read("p.csv");
    let [low, middle, high] = ["q0.1", "q0.5", "q0.9"].map(|name| column(&predicted, name));
    for i in 0..60 {
        assert!(low[i].fract() == 0.0 && high[i].fract() == 0.0, "{} {}", low[i], high[i]);
        assert!(low[i] <= middle[i] && middle[i] <= high[i]);
    }
    let y = column(&folder.read("n.csv"), "y");
    let inside = (0..60).filter(|i| low[*i] <= y[*i] && y[*i] <= high[*i]).count();
    assert!(inside > 45, "{inside} of 60");
    // so are those of the function, whose law is not normal: there the median would be the mean, to
    // the digit (which may lie between the middle draws of a row)
    folder.ok("predict n.gp n.csv --latent --quantiles 0.025,0.5,0.975 -o f.csv");
    let latent = folder.read("f.csv");
    let [mean, sd, low, middle, high] =
        ["mean", "sd", "q0.025", "q0.5", "q0.975"].map(|name| column(&latent, name));
    let apart = |i: usize| (middle[i] - mean[i]).abs() / sd[i];
    let different = (0..60).filter(|i| apart(*i) > 1e-6).count();
    assert!(different > 30, "{different} of 60");
    for i in 0..60 {
        assert!(apart(i) < 0.5, "{i}: {}", apart(i));
        let width = (high[i] - low[i]) / sd[i];
        // 3.92 for a normal; tails of a mixture are heavier, here by what 120 draws happen to be
        assert!((3.0..5.2).contains(&width), "{i}: {width}");
    }
}

#[test]
fn predictions_average_over_draws() {
    let folder = folder();
    // a Student-t fit with an outlier that the chain takes for one
    let rows: String = (0..40)
        .map(|i| {
            let x = f64::from(i) / 8.0;
            let y = if i == 20 { 30.0 } else { x.sin() + 0.05 * (13.0 * x).cos() };
            format!("{x},{y}\n")
        })
        .collect();
    folder.write("t.csv", format!("x,y\n{rows}"));
    folder.ok("fit t.csv --target y --likelihood 'student-t' --method gibbs --draws 200 -o t.gp");
    folder.write("new.csv", "x\n2.5\n1.3\n");
    folder.ok("predict t.gp new.csv -o p.csv");
    let mean = column(&folder.read("p.csv"), "mean");
    for (mean, x) in mean.iter().zip([2.5_f64, 1.3]) {
        assert!((mean - x.sin()).abs() < 0.15, "{mean} for {}", x.sin());
    }
}
