//! Describes an experiment: one table or figure of a paper.

use super::Run;
use crate::page::Drawn;

/// A paper, or a chapter of the thesis that is one.
#[derive(Debug)]
pub struct Paper {
    /// Names its page in `docs/papers`, and begins the names of its experiments.
    pub slug: &'static str,
    /// Heads its page.
    pub title: &'static str,
    /// Says who published it, when and where.
    pub reference: &'static str,
    /// Heads its errata in `docs/guide/errata.md`, as an anchor.
    pub errata: &'static str,
}

const THESIS: &str = "galy-fajou-2022-latent-variable-augmentation-for-approximate-bayesian-inference-\
                      thesis";

/// All papers in the order of the pages.
pub const PAPERS: [Paper; 10] = [
    Paper {
        slug: "dual",
        title: "Dual parameterization of sparse variational Gaussian processes",
        reference: "Adam, Chang, Khan & Solin, NeurIPS 2021",
        errata: "adam-chang-khan--solin-2021-dual-parameterization-of-sparse-variational-gaussian-\
                 processes-neurips",
    },
    Paper {
        slug: "inverse-free",
        title: "Inverse-free sparse variational Gaussian processes",
        reference: "Cortinovis, Aitchison, Eleftheriadis & van der Wilk",
        errata: "cortinovis-aitchison-eleftheriadis--van-der-wilk-inverse-free-sparse-variational-\
                 gaussian-processes",
    },
    Paper {
        slug: "bounds",
        title: "New bounds for sparse variational Gaussian processes",
        reference: "Titsias, ICML 2025",
        errata: "titsias-2025-new-bounds-for-sparse-variational-gaussian-processes-icml",
    },
    Paper {
        slug: "basics",
        title: "Thesis, chapters 1 and 2: Bayesian inference and Gaussian processes",
        reference: "Galy-Fajou 2022, Latent variable augmentation for approximate Bayesian inference",
        errata: THESIS,
    },
    Paper {
        slug: "xgpc",
        title: "Thesis, chapter 3: efficient Gaussian process classification by Pólya-Gamma variables",
        reference: "Wenzel, Galy-Fajou, Donner, Kloft & Opper, AAAI 2019",
        errata: THESIS,
    },
    Paper {
        slug: "classes",
        title: "Thesis, chapter 4: multi-class Gaussian process classification made conjugate",
        reference: "Galy-Fajou, Wenzel, Donner & Opper, UAI 2019",
        errata: THESIS,
    },
    Paper {
        slug: "aaci",
        title: "Thesis, chapter 5: automated augmented conjugate inference",
        reference: "Galy-Fajou, Wenzel & Opper, AISTATS 2020",
        errata: THESIS,
    },
    Paper {
        slug: "flow",
        title: "Thesis, chapter 6: flexible and efficient inference with particles",
        reference: "Galy-Fajou, Perrone & Opper, Entropy 2021",
        errata: THESIS,
    },
    Paper {
        slug: "more",
        title: "Thesis, chapter 7: more on augmentations",
        reference: "Galy-Fajou 2022, Latent variable augmentation for approximate Bayesian inference",
        errata: THESIS,
    },
    Paper {
        slug: "oips",
        title: "Thesis, appendix A: adaptive inducing points selection",
        reference: "Galy-Fajou & Opper 2020",
        errata: "galy-fajou--opper-2020-adaptive-inducing-points-selection-for-gaussian-processes-in-the-\
                 thesis-above",
    },
];

/// What an experiment is run on.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// A table of `testdata/data`, by its name.
    Bundled(&'static str),
    /// Rows that the paper draws too.
    Simulated(&'static str),
    /// A table in the folder that `--data` names, which is not bundled.
    Folder {
        /// Its name there: CSV with a header, the last column is the target.
        file: &'static str,
        /// Rows and inputs, by which it is recognised.
        size: (usize, usize),
        /// Where to get it.
        from: &'static str,
    },
    /// A bundled table in place of another: never called by that one's name.
    Substitute {
        /// What the paper has.
        of: &'static str,
        /// What is used here.
        by: &'static str,
    },
    /// None.
    Nothing,
}

impl std::fmt::Display for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bundled(name) => write!(f, "`{name}` (bundled)"),
            Self::Simulated(what) => write!(f, "simulated: {what}"),
            Self::Folder { file, size: (rows, inputs), from } => {
                write!(
                    f,
                    "`{file}` in the folder of `--data` ({rows} rows, {inputs} inputs): {from}"
                )
            }
            Self::Substitute { of, by } => write!(f, "`{by}` (bundled) in place of {of}"),
            Self::Nothing => write!(f, "none"),
        }
    }
}

/// A number that a paper prints.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// Names it; a check of the same name compares it with ours.
    pub what: &'static str,
    /// The number.
    pub value: f64,
    /// Its standard error, or half a unit of its last digit where none is printed.
    pub error: f64,
}

/// How an experiment comes to a result.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// By a program.
    Program(fn(&mut Run<'_>) -> Drawn),
    /// By a program, if one of the tables of the entry is in the folder of `--data`.
    WithData(fn(&mut Run<'_>) -> Drawn),
    /// It is a scheme or a list, which nothing can reproduce.
    Drawing,
}

/// One table or figure, or a part of it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line: that of the paper, then the item.
    pub name: &'static str,
    /// The paper's slug.
    pub paper: &'static str,
    /// The table or figure.
    pub item: &'static str,
    /// How many panels or data sets of the item it stands for.
    pub panels: usize,
    /// What the paper shows there.
    pub shows: &'static str,
    /// What it is run on.
    pub data: &'static [Data],
    /// How it is run.
    pub protocol: &'static str,
    /// What is smaller than in the paper and why; empty if nothing.
    pub scaled: &'static str,
    /// What the paper prints.
    pub printed: &'static [Printed],
    /// How the verdict comes about, fixed before the run.
    pub rule: &'static str,
    /// The program, or why there is none.
    pub body: Body,
}

/// An entry without contents, to be completed.
pub const BLANK: Entry = Entry {
    name: "",
    paper: "",
    item: "",
    panels: 1,
    shows: "",
    data: &[],
    protocol: "",
    scaled: "",
    printed: &[],
    rule: "",
    body: Body::Drawing,
};

impl Entry {
    /// Returns the paper.
    ///
    /// # Panics
    /// If [`PAPERS`] does not have it.
    pub fn of(&self) -> &'static Paper {
        PAPERS.iter().find(|paper| paper.slug == self.paper).expect("a paper of PAPERS")
    }
}
