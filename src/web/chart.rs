//! Charts: small SVG drawn on the server. Their colours are the marks' tones, their words stand
//! beside them, and a table below holds what they show.

/// A drawing of blocks in a box that is stretched to the place it has.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows, for those who do not see it.
    pub label: String,
    /// Of the box.
    pub width: usize,
    /// Of the box.
    pub height: usize,
    /// What is drawn.
    pub blocks: Vec<Block>,
    /// Under it, from its beginning to its end.
    pub axis: Vec<String>,
}

/// A filled rectangle.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
    /// How wide.
    pub width: f64,
    /// How high.
    pub height: f64,
    /// The colour: `good`, `maybe`, `bad`, `info` or `mute`.
    pub tone: &'static str,
}

/// The height of columns.
const HEIGHT: usize = 100;
/// The room of one column.
const COLUMN: usize = 10;
/// The height of a line of spans.
const LINE: usize = 10;
/// The width of spans.
const WIDTH: usize = 1000;
/// The least that is still seen.
const SEEN: f64 = 4.0;

#[allow(clippy::cast_precision_loss, reason = "places on a picture")]
fn real(number: usize) -> f64 {
    number as f64
}

impl Chart {
    /// Columns of equal width, oldest first, each made of counts from the bottom up.
    pub fn columns(label: String, columns: &[Vec<(&'static str, usize)>], axis: Vec<String>) -> Self {
        let highest = Self::highest(columns).max(1);
        let mut blocks = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let mut floor = real(HEIGHT);
            for (tone, count) in column.iter().filter(|(_, count)| *count > 0) {
                let height = (real(HEIGHT) * real(*count) / real(highest)).max(1.5).min(floor);
                floor -= height;
                blocks.push(Block {
                    x: real(place * COLUMN) + 1.0,
                    y: floor,
                    width: real(COLUMN) - 2.0,
                    height,
                    tone,
                });
            }
        }
        Self { label, width: columns.len().max(1) * COLUMN, height: HEIGHT, blocks, axis }
    }

    /// What the highest column stands for.
    pub fn highest(columns: &[Vec<(&'static str, usize)>]) -> usize {
        columns.iter().map(|column| column.iter().map(|(_, count)| count).sum()).max().unwrap_or(0)
    }

    /// Lines from the top, each with spans: a beginning and an end as parts of the whole.
    pub fn spans(label: String, lines: &[Vec<(f64, f64, &'static str)>], axis: Vec<String>) -> Self {
        let block = |line: usize, (from, to, tone): &(f64, f64, &'static str)| {
            let (from, to) = (from.clamp(0.0, 1.0), to.clamp(0.0, 1.0));
            let width = ((to - from) * real(WIDTH)).max(SEEN);
            Block {
                x: (from * real(WIDTH)).min(real(WIDTH) - width),
                y: real(line * LINE) + 1.5,
                width,
                height: real(LINE) - 3.0,
                tone,
            }
        };
        let blocks = lines.iter().enumerate();
        let blocks = blocks.flat_map(|(line, spans)| spans.iter().map(move |span| block(line, span)));
        Self { label, width: WIDTH, height: lines.len().max(1) * LINE, blocks: blocks.collect(), axis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_on_the_ground_and_fit() {
        let columns = [vec![("good", 3), ("bad", 1)], vec![], vec![("good", 0), ("maybe", 2)]];
        let chart = Chart::columns("x".into(), &columns, vec![]);
        assert_eq!((chart.width, chart.blocks.len()), (30, 3));
        assert_eq!(chart.blocks[0], Block { x: 1.0, y: 25.0, width: 8.0, height: 75.0, tone: "good" });
        assert_eq!(chart.blocks[1], Block { x: 1.0, y: 0.0, width: 8.0, height: 25.0, tone: "bad" });
        assert_eq!(chart.blocks[2], Block { x: 21.0, y: 50.0, width: 8.0, height: 50.0, tone: "maybe" });
        let one_of_many = Chart::columns("x".into(), &[vec![("good", 100_000), ("bad", 1)]], vec![]);
        assert!(one_of_many.blocks.iter().all(|block| block.y >= 0.0 && block.height > 0.0));
        assert!(Chart::columns("x".into(), &[], vec![]).blocks.is_empty());
    }

    #[test]
    fn spans_stay_in_their_box_and_are_seen() {
        let lines = [vec![(0.0, 0.0, "info")], vec![(0.5, 2.0, "mute"), (1.0, 1.0, "bad")], vec![]];
        let chart = Chart::spans("x".into(), &lines, vec![]);
        assert_eq!(chart.height, 30);
        for block in &chart.blocks {
            assert!(block.width >= 4.0 && block.x >= 0.0 && block.x + block.width <= 1000.0, "{block:?}");
        }
        assert_eq!((chart.blocks[1].x, chart.blocks[1].width), (500.0, 500.0));
    }
}
