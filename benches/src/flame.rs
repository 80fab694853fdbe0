//! A profile as a picture: an SVG that needs nothing else.
//!
//! The message is the topmost box and as wide as its instructions; below each box are those of what it called, dearest
//! first. A click on a box makes it fill the width, one on the message shows everything again; the mouse on a box shows
//! its figures.

use std::fmt::Write;

use icsql_replica::Profile;

use crate::results::thousands;

const WIDTH: f64 = 1_200.0;
const ROW_HEIGHT: usize = 18;
/// Room for title and legend.
const TOP: usize = 48;
/// Of a letter, about.
const LETTER_WIDTH: f64 = 6.6;

/// Whose code a function is, and its colour.
const KINDS: [(&str, &str); 5] = [
    ("the system's", "#8fb8de"),
    ("icsql", "#9ccb86"),
    ("SQLite", "#f2b26b"),
    ("libraries", "#cfc6b8"),
    ("dirty heap pages", "#e08f8f"),
];

/// Groups functions for their colours. C has no paths; the few C functions that are not SQLite's are its libc.
fn kind(name: &str) -> usize {
    match name {
        "dirty heap pages" => 4,
        _ if name.starts_with("ic0.") => 0,
        _ if name.contains("icsql") || name.starts_with("canister_") || name == "message" => 1,
        _ if !name.contains("::") && !name.contains(' ') => 2,
        _ => 3,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// As much of a name as fits a box.
fn fitting(name: &str, width: f64) -> String {
    let letters = ((width - 6.0).max(0.0) / LETTER_WIDTH) as usize;
    match letters {
        0..3 => String::new(),
        _ if name.chars().count() <= letters => name.to_string(),
        _ => name.chars().take(letters - 1).chain(['…']).collect(),
    }
}

/// Draws the flame graph. `title` says what was profiled.
pub fn svg(profile: &Profile, title: &str) -> String {
    let inclusive = profile.inclusive();
    let total = inclusive.first().copied().unwrap_or(0);
    let scale = WIDTH / total.max(1) as f64;

    let mut children = vec![Vec::new(); profile.frames.len()];
    for (index, frame) in profile.frames.iter().enumerate() {
        if let Some(parent) = frame.parent {
            children[parent].push(index);
        }
    }
    // Offset from the left in instructions, and depth. A caller comes before what it calls.
    let mut places = vec![(0_u64, 0_usize); profile.frames.len()];
    let mut rows = 0;
    for (index, called) in children.iter_mut().enumerate() {
        called.sort_by_key(|child| std::cmp::Reverse(inclusive[*child]));
        let (mut left, depth) = places[index];
        if inclusive[index] > 0 {
            rows = rows.max(depth + 1);
        }
        for child in called {
            places[*child] = (left, depth + 1);
            left += inclusive[*child];
        }
    }

    let height = TOP + rows * ROW_HEIGHT + 4;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"11\">\n<style>g.f{{cursor:pointer}} g.f:hover rect{{stroke:#000}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"4\" y=\"17\" font-size=\"13\">{}: {} instructions</text>\n",
        escape(title),
        thousands(total)
    );
    let mut x = 4.0;
    for (name, colour) in KINDS {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"27\" width=\"11\" height=\"11\" fill=\"{colour}\"/><text x=\"{}\" y=\"37\">{name}</text>",
            x + 15.0
        );
        x += 30.0 + LETTER_WIDTH * name.len() as f64;
    }
    for (index, frame) in profile.frames.iter().enumerate().filter(|(index, _)| inclusive[*index] > 0) {
        let (left, depth) = places[index];
        let (x, y) = (left as f64 * scale, TOP + depth * ROW_HEIGHT);
        let width = inclusive[index] as f64 * scale;
        let percent = inclusive[index] as f64 * 100.0 / total.max(1) as f64;
        let _ = writeln!(
            out,
            "<g class=\"f\" data-x=\"{left}\" data-w=\"{}\" data-n=\"{name}\"><title>{name}\n{} instructions, {percent:.2} %, \
             {} of them its own\n{} calls</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" \
             fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.5\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>",
            inclusive[index],
            thousands(inclusive[index]),
            thousands(frame.instructions),
            thousands(frame.calls),
            ROW_HEIGHT - 1,
            KINDS[kind(&frame.name)].1,
            x + 3.0,
            y + 13,
            escape(&fitting(&frame.name, width)),
            name = escape(&frame.name),
        );
    }
    let _ = write!(
        out,
        "<script><![CDATA[
const boxes = [...document.querySelectorAll('g.f')];
const show = (from, span) => boxes.forEach(g => {{
  const x = Math.max(0, (g.dataset.x - from) / span * {WIDTH});
  const end = Math.min({WIDTH}, (+g.dataset.x + +g.dataset.w - from) / span * {WIDTH});
  const [, box, text] = g.children, letters = Math.floor((end - x - 6) / {LETTER_WIDTH}), name = g.dataset.n;
  g.style.display = end - x > 0.01 ? '' : 'none';
  box.setAttribute('x', x); box.setAttribute('width', Math.max(0, end - x)); text.setAttribute('x', x + 3);
  text.textContent = letters < 3 ? '' : name.length <= letters ? name : name.slice(0, letters - 1) + '…';
}});
boxes.forEach(g => g.addEventListener('click', () => show(+g.dataset.x, +g.dataset.w)));
]]></script>\n</svg>\n"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use icsql_replica::{Cost, Frame};

    #[test]
    fn boxes_are_as_wide_as_their_instructions_and_dearest_first() {
        let frame = |parent, name: &str, instructions| Frame {
            parent,
            name: name.into(),
            instructions,
            calls: 1,
            counted_instructions: 0,
            counted_calls: 0,
        };
        let profile = Profile {
            entry: "canister_update a".to_string(),
            cost: Cost::default(),
            frames: vec![
                frame(None, "message", 100),
                frame(Some(0), "cheap<T>", 100),
                frame(Some(0), "dear", 200),
                frame(Some(2), "ic0.msg_reply", 200),
                frame(Some(2), "never", 0),
            ],
        };
        let picture = svg(&profile, "a & b");
        assert!(picture.contains("a &amp; b: 600 instructions"));
        let boxes: Vec<(f64, f64, f64)> = picture
            .lines()
            .filter(|line| line.contains("<title>") || line.contains("calls</title>"))
            .filter_map(|line| line.split_once("<rect ").map(|(_, rect)| rect))
            .map(|rect| {
                let attribute = |name: &str| {
                    let (_, rest) = rect.split_once(&format!("{name}=\"")).expect(name);
                    rest.split_once('"').expect(name).0.parse().expect(name)
                };
                (attribute("x"), attribute("y"), attribute("width"))
            })
            .collect();
        let (first, second, third) = (TOP as f64, (TOP + ROW_HEIGHT) as f64, (TOP + 2 * ROW_HEIGHT) as f64);
        assert_eq!(
            boxes,
            [(0.0, first, 1_200.0), (800.0, second, 200.0), (0.0, second, 800.0), (0.0, third, 400.0)],
            "{picture}"
        );
        assert!(picture.contains("data-n=\"cheap&lt;T&gt;\""));
    }
}
