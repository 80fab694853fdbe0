//! The results as a picture: a line for each case, a mark for each subject at what the case costs it.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::title;
use crate::results::Measurement;
use crate::subject::{BTREEMAP, IC_SQLITE_VFS, ICSQL, ICSQL_SQL, SQLITE_HEAP};

/// What is shown: the case with its row count, and its label.
const LINES: [(&str, u32, &str); 27] = [
    ("kv_get", 2_000, "get"),
    ("kv_get_after_upgrade", 2_000, "get, first after an upgrade"),
    ("kv_get_many_100", 2_000, "get of 100 keys"),
    ("kv_put_existing", 2_000, "put"),
    ("kv_put_new", 2_000, "put of a new key"),
    ("kv_put_after_upgrade", 2_000, "put, first after an upgrade"),
    ("seq_get_beside_large_values", 2_000, "get beside large values"),
    ("seq_mix_95_5", 2_000, "95 % gets, 5 % puts (mean)"),
    ("read_1", 1_000, "1 row, in a new message"),
    ("read_1_warm", 1_000, "1 row, read before"),
    ("read_100", 1_000, "100 rows, a query each"),
    ("in_100", 1_000, "100 rows, IN (…)"),
    ("scan_100", 5_000, "scan of 100 rows"),
    ("scan_5000", 5_000, "scan of 5,000 rows"),
    ("scan_5000_lengths", 5_000, "scan of 5,000 rows, lengths"),
    ("sort_5000", 5_000, "ORDER BY of 5,000 rows"),
    ("join_2000", 2_000, "join of 2,000 rows"),
    ("blob_read_256k", 1, "blob of 256 KiB, read"),
    ("blob_write_256k", 0, "blob of 256 KiB, written"),
    ("update_20_commits", 5_000, "20 updates, a commit each"),
    ("insert_1000", 0, "1,000 inserts"),
    ("append_1000", 5_000, "1,000 inserts behind 5,000"),
    ("upsert_1000", 1_000, "1,000 upserts"),
    ("update_1000", 1_000, "1,000 updates"),
    ("delete_1000", 5_000, "1,000 deletes"),
    ("churn_100_cycles", 5_000, "1,000 deletes, 1,000 inserts"),
    ("insert_5000", 0, "5,000 inserts"),
];

/// The subjects with their colours, which differ for the colour-blind too, and their marks.
const SUBJECTS: [(&str, RGBColor, Mark); 5] = [
    (IC_SQLITE_VFS, RGBColor(0xD5, 0x5E, 0x00), Mark::Triangle),
    (BTREEMAP, RGBColor(0x00, 0x8F, 0x68), Mark::Square),
    (SQLITE_HEAP, RGBColor(0x77, 0x77, 0x77), Mark::Cross),
    (ICSQL_SQL, RGBColor(0x56, 0xB4, 0xE9), Mark::Circle),
    (ICSQL, RGBColor(0x00, 0x5F, 0xA8), Mark::Circle),
];

#[derive(Clone, Copy)]
enum Mark {
    Circle,
    Triangle,
    Square,
    Cross,
}

const WIDTH: u32 = 960;
const LINE_HEIGHT: u32 = 24;
/// Room for labels on the left, for title and legend above, and for the scale below.
const LEFT: u32 = 250;
const TOP: u32 = 84;
const BOTTOM: u32 = 56;
const RIGHT: u32 = 24;

const FONT: &str = "Helvetica, Arial, sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);

/// Draws the chart. It brings its own light background, so that it is readable wherever it is shown.
///
/// # Errors
/// A case of the chart that was not measured.
pub fn svg(measured: &[Measurement]) -> Result<String, String> {
    let figures: Vec<(&str, Vec<Option<u64>>)> = LINES
        .iter()
        .map(|(case, rows, label)| {
            let of =
                |subject: &str| measured.iter().find(|m| m.case == *case && m.rows == *rows && m.subject == subject);
            let line: Vec<_> = SUBJECTS.iter().map(|(subject, ..)| of(subject).map(|m| m.instructions)).collect();
            match line.iter().any(Option::is_some) {
                true => Ok((*label, line)),
                false => Err(format!("the chart shows {case} with {rows} rows, which the results have not")),
            }
        })
        .collect::<Result<_, _>>()?;
    let mut out = String::new();
    draw(&mut out, &figures).map_err(|error| format!("drawing the chart: {error}"))?;
    Ok(out)
}

fn draw(out: &mut String, figures: &[(&str, Vec<Option<u64>>)]) -> Result<(), Box<dyn std::error::Error>> {
    let height = TOP + LINE_HEIGHT * figures.len() as u32 + BOTTOM;
    let root = SVGBackend::with_string(out, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;

    let all = || figures.iter().flat_map(|(_, line)| line.iter().flatten());
    let decade = |n: f64| 10f64.powf(n);
    let least = decade((*all().min().unwrap_or(&1) as f64).log10().floor());
    let most = decade((*all().max().unwrap_or(&10) as f64).log10().ceil());
    let (left, right, bottom) = (LEFT as i32, (WIDTH - RIGHT) as i32, (height - BOTTOM) as i32);
    let axis: LogCoord<f64> = (least..most).log_scale().into();
    let x = |figure: f64| axis.map(&figure, (left, right));

    let font = |size: f64| (FONT, size).into_font().color(&INK);
    // The SVG backend writes sizes 1.24 times smaller than it is told.
    let text = |words: &str, at: (i32, i32), size: f64, h: HPos| {
        root.draw(&Text::new(words.to_string(), at, font(size * 1.24).pos(Pos::new(h, VPos::Center))))
    };
    text("IC instructions, logarithmic scale: further left is cheaper", (left, 22), 16.0, HPos::Left)?;
    let mut at = 24;
    for (subject, colour, mark) in SUBJECTS.iter().rev() {
        draw_mark(&root, (at + 6, 50), *colour, *mark)?;
        text(title(subject), (at + 18, 50), 13.0, HPos::Left)?;
        at += 44 + title(subject).len() as i32 * 7;
    }

    // A line for each power of ten.
    let mut tick = least;
    while tick <= most * 1.001 {
        root.draw(&PathElement::new(vec![(x(tick), TOP as i32), (x(tick), bottom)], FAINT))?;
        text(&short(tick), (x(tick), bottom + 16), 13.0, HPos::Center)?;
        tick *= 10.0;
    }
    for (place, (label, line)) in figures.iter().enumerate() {
        let y = (TOP + LINE_HEIGHT * place as u32 + LINE_HEIGHT / 2) as i32;
        text(label, (left - 12, y), 13.0, HPos::Right)?;
        root.draw(&PathElement::new(vec![(left, y), (right, y)], FAINT))?;
        for (figure, (_, colour, mark)) in line.iter().zip(SUBJECTS) {
            if let Some(figure) = figure {
                draw_mark(&root, (x(*figure as f64), y), colour, mark)?;
            }
        }
    }
    root.present()?;
    Ok(())
}

fn draw_mark<DB: DrawingBackend>(
    root: &DrawingArea<DB, Shift>,
    at: (i32, i32),
    colour: RGBColor,
    mark: Mark,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
    match mark {
        Mark::Circle => root.draw(&Circle::new(at, 6, colour.filled())),
        Mark::Triangle => root.draw(&TriangleMarker::new(at, 7, colour.filled())),
        Mark::Square => root.draw(&Rectangle::new([(at.0 - 5, at.1 - 5), (at.0 + 5, at.1 + 5)], colour.filled())),
        Mark::Cross => root.draw(&Cross::new(at, 6, colour.stroke_width(2))),
    }
}

/// A power of ten in short: `10 k`, `1 M`.
fn short(n: f64) -> String {
    match n {
        n if n < 1e3 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.0} k", n / 1e3),
        n if n < 1e9 => format!("{:.0} M", n / 1e6),
        n => format!("{:.0} G", n / 1e9),
    }
}
