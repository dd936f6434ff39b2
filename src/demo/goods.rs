//! Orders of a shop that does not exist, by customers who do not.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::ambient::Ambient;
use crate::engine::accept::Submission;

/// Names that read as made up; `example.com` is nobody's.
const CUSTOMERS: [&str; 16] = [
    "Anna Beispiel",
    "Bruno Muster",
    "Carla Ejemplo",
    "Dmitri Primer",
    "Elif Örnek",
    "Farid Sample",
    "Greta Exempel",
    "Hugo Exemple",
    "Ines Exemplo",
    "Jonas Voorbeeld",
    "Kaja Näidis",
    "Liam Placeholder",
    "Mira Przykład",
    "Noor Model",
    "Otto Normal",
    "Pia Esempio",
];

/// What tickets are about.
const SUBJECTS: [&str; 6] = [
    "The parcel has not arrived",
    "The blue mug came in green",
    "Please change the delivery address",
    "The invoice names the wrong company",
    "A part is missing from the shelf",
    "Where is my refund?",
];

/// A configured type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ticket,
    Charge,
    Receipt,
    Contact,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ticket => "create-ticket",
            Self::Charge => "charge-card",
            Self::Receipt => "send-receipt",
            Self::Contact => "sync-contact",
        }
    }
}

/// An operation that is about to be submitted.
#[derive(Clone, Debug)]
pub(super) struct Good {
    kind: Kind,
    number: u64,
    payload: Value,
}

impl Good {
    /// Where the destination sees it: nothing else has this beginning.
    pub(super) fn path(&self) -> String {
        let number = self.number;
        match self.kind {
            Kind::Ticket => format!("/lookup/tickets?order=ORD-{number}"),
            Kind::Charge => format!("/keyed/charges?order=ORD-{number}"),
            Kind::Receipt => format!("/plain/receipts?order=ORD-{number}"),
            Kind::Contact => format!("/keyed/contacts?change=CHG-{number}"),
        }
    }

    pub(super) fn submission(&self) -> Option<Submission> {
        Some(Submission {
            kind: self.kind.name().to_owned(),
            payload: RawValue::from_string(self.payload.to_string()).ok()?,
            key: (self.kind == Kind::Contact).then(|| format!("contact:CHG-{}", self.number)),
            correlation_id: Some(format!("web-{:06x}", self.number.wrapping_mul(0x9E_3779) & 0xFF_FFFF)),
            source: Some("shop".to_owned()),
            by: "token:shop".to_owned(),
        })
    }

    /// The same key with other data: a mistake of the sender's.
    pub(super) fn altered(mut self) -> Self {
        self.payload["note"] = "changed after it was first sent".into();
        self
    }
}

/// Makes orders, each with a number of its own.
pub(super) struct Warehouse {
    next: u64,
    pub(super) rng: StdRng,
}

impl Warehouse {
    pub(super) fn new(ambient: &Ambient) -> Self {
        // Ten numbers for each second that passes: more than are used, so that a second start on the
        // same data does not meet its own keys.
        let tenths = u64::try_from(ambient.now().as_micros() / 100_000).unwrap_or(0);
        Self { next: tenths % 10_000_000, rng: StdRng::from_seed(ambient.secret()) }
    }

    /// Of any kind.
    pub(super) fn any(&mut self) -> Good {
        let kind = match self.rng.random_range(0..10) {
            0..3 => Kind::Ticket,
            3..6 => Kind::Charge,
            6..8 => Kind::Receipt,
            _ => Kind::Contact,
        };
        self.good(kind)
    }

    pub(super) fn good(&mut self, kind: Kind) -> Good {
        let number = self.next;
        self.next += 1;
        let who = self.rng.random_range(0..CUSTOMERS.len());
        let name = CUSTOMERS[who];
        let mail: String = name.to_lowercase().chars().filter_map(ascii).collect();
        let customer = json!({
            "id": format!("C-{}", 2001 + who * 7),
            "name": name,
            "email": format!("{mail}@example.com"),
        });
        let order = format!("ORD-{number}");
        let amount = f64::from(self.rng.random_range(290..24_900)) / 100.0;
        let payload = match kind {
            Kind::Ticket => json!({
                "order_id": order,
                "version": 1,
                "subject": SUBJECTS[self.rng.random_range(0..SUBJECTS.len())],
                "customer": customer,
            }),
            Kind::Charge => json!({
                "order_id": order,
                "amount": amount,
                "currency": "EUR",
                "card": format!("card_example_{:04}", self.rng.random_range(0..10_000)),
                "customer": customer,
            }),
            Kind::Receipt => {
                json!({"order_id": order, "amount": amount, "currency": "EUR", "customer": customer})
            }
            Kind::Contact => json!({"change_id": format!("CHG-{number}"), "customer": customer}),
        };
        Good { kind, number, payload }
    }
}

/// A letter of a mail address.
fn ascii(letter: char) -> Option<char> {
    match letter {
        ' ' => Some('.'),
        'ä' => Some('a'),
        'ö' => Some('o'),
        'ł' => Some('l'),
        other => other.is_ascii().then_some(other),
    }
}
