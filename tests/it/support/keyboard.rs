//! A person without a mouse.

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::key::Key;
use serde::Deserialize;

use super::browser::Browser;

/// Where the keyboard is.
#[derive(Debug, Deserialize)]
pub(crate) struct Stop {
    /// The how-manieth element of the page it is.
    pub(crate) index: usize,
    /// What it is called: its label, else its text.
    pub(crate) name: String,
    /// What hides from the eye where the keyboard is; absent when it can be seen.
    pub(crate) hidden: Option<String>,
}

const STOP: &str = r#"
const at = document.activeElement;
if (!at || at === document.body || at === document.documentElement) return null;
const style = getComputedStyle(at);
const boxes = [...at.getClientRects()];
const words = at.labels?.length ? at.labels[0].innerText : at.getAttribute("aria-label") || at.innerText || at.value;
const onScreen = boxes.some((box) => {
  // Its middle or a corner; of something large, a part is enough.
  const places = [[0.5, 0.5], [0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]];
  return places.some(([across, down]) => {
    const there = document.elementFromPoint(box.left + box.width * across, box.top + box.height * down);
    return there && (at.contains(there) || there.contains(at));
  });
});
let hidden = null;
if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) hidden = `outline ${style.outline}`;
else if (!onScreen) hidden = `not on the screen, or under something: ${JSON.stringify(boxes)}`;
return {
  index: [...document.querySelectorAll("*")].indexOf(at),
  name: (words ?? "").replace(/\s+/g, " ").trim(),
  hidden,
};
"#;

impl Browser {
    pub(crate) async fn press(&self, key: Key) {
        self.strike(&[key.into()]).await;
    }

    /// One key while another is held.
    pub(crate) async fn press_with(&self, held: Key, key: Key) {
        let keys = KeyActions::new("keyboard".into())
            .then(KeyAction::Down { value: held.into() })
            .then(KeyAction::Down { value: key.into() })
            .then(KeyAction::Up { value: key.into() })
            .then(KeyAction::Up { value: held.into() });
        self.client.perform_actions(keys).await.unwrap_or_else(|error| panic!("{key:?}: {error}"));
    }

    /// Types into whatever has the keyboard.
    pub(crate) async fn type_text(&self, text: &str) {
        self.strike(&text.chars().collect::<Vec<_>>()).await;
    }

    async fn strike(&self, keys: &[char]) {
        let strikes = keys.iter().fold(KeyActions::new("keyboard".into()), |strikes, key| {
            strikes.then(KeyAction::Down { value: *key }).then(KeyAction::Up { value: *key })
        });
        self.client.perform_actions(strikes).await.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    }

    /// Where the keyboard is; nowhere at a page's beginning and behind its end.
    pub(crate) async fn stop(&self) -> Option<Stop> {
        serde_json::from_value(self.evaluate(STOP, Vec::new()).await).expect("a stop")
    }
}
