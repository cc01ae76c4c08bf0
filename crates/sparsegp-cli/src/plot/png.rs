//! Pictures as PNG: drawn from the SVG, with letters of our own, so that they look the same on every machine.

use super::Drawn;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// DejaVu Sans: Latin, Greek and Cyrillic letters and the signs that pictures use; letters of other scripts (in the name of
/// a column) are left out of a PNG, an SVG has them. Made of version 2.35 by fontTools' `pyftsubset` with `--no-hinting
/// --layout-features=kern,mark,mkmk --unicodes=U+0020-024F,U+0300-0304,U+0370-03FF,U+0400-045F,U+2010-2027,U+2030-203A,
/// U+2070-209F,U+20AC,U+2190-2193,U+2200-2265,U+25A0-25FF,U+2113`.
const LETTERS: &[u8] = include_bytes!("../../data/DejaVuSans.ttf");

/// Pixels for each of the SVG: sharp on a dense screen and on paper.
const DENSITY: f32 = 2.0;

/// Returns the bytes of a PNG file.
pub fn png(svg: &str) -> Drawn<Vec<u8>> {
    let mut options = Options::default();
    let letters = options.fontdb_mut();
    letters.load_font_data(LETTERS.to_vec());
    letters.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size();
    let pixels = |length: f32| (DENSITY * length).ceil() as u32;
    let mut image = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or("the picture has no size")?;
    resvg::render(&tree, Transform::from_scale(DENSITY, DENSITY), &mut image.as_mut());
    Ok(image.encode_png()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shapes are where they are in the SVG, letters are drawn, and the rest is white.
    #[test]
    fn a_png_shows_what_the_svg_says() {
        let svg = r##"<svg width="90" height="52" viewBox="0 0 90 52" xmlns="http://www.w3.org/2000/svg">
<rect x="0" y="0" width="90" height="52" fill="#FFFFFF" stroke="none"/>
<rect x="5" y="30" width="20" height="10" fill="#CC2200" stroke="none"/>
<text x="40" y="20" font-family="sans-serif" font-size="16" fill="#000000">±σÄЖ²</text>
</svg>"##;
        let image = Pixmap::decode_png(&png(svg).unwrap()).unwrap();
        assert_eq!((image.width(), image.height()), (180, 104));
        let at = |x: u32, y: u32| {
            let own = image.pixel(x, y).unwrap();
            [own.red(), own.green(), own.blue(), own.alpha()]
        };
        assert_eq!(at(11, 61), [0xcc, 0x22, 0, 255]);
        assert_eq!(at(49, 79), [0xcc, 0x22, 0, 255]);
        assert_eq!((at(53, 70), at(30, 83)), ([255; 4], [255; 4]));
        let dark = |x: std::ops::Range<u32>| {
            let all = x.flat_map(|x| (0..52).map(move |y| (x, y)));
            all.filter(|(x, y)| at(*x, *y)[0] < 100).count()
        };
        assert_eq!(dark(0..78), 0);
        // every fifth of the word
        for letter in 0..5 {
            assert!(dark(80 + 20 * letter..100 + 20 * letter) > 20, "{letter}");
        }
    }
}
