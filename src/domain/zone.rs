//! Time zones: where a reader sits. The data is the IANA's, inside the program, so that every
//! machine tells the same time.

use std::fmt;

use time::{OffsetDateTime, UtcOffset};

use super::time::Timestamp;
use super::words;

/// A zone of the IANA's list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// "Europe/Berlin".
    name: &'static str,
}

impl Zone {
    /// The zone in which moments are stored.
    pub const UTC: Self = Self { name: "UTC" };

    /// By its name, in the list's own spelling.
    pub fn named(name: &str) -> Option<Self> {
        tzdb_data::TZ_NAMES.iter().find(|known| **known == name).map(|name| Self { name })
    }

    /// Those that people call by a place, by name, and UTC before them.
    pub fn places() -> impl Iterator<Item = Self> {
        let place = |name: &&&str| {
            let (area, _) = name.split_once('/').unwrap_or_default();
            [
                "Africa",
                "America",
                "Antarctica",
                "Arctic",
                "Asia",
                "Atlantic",
                "Australia",
                "Europe",
                "Indian",
                "Pacific",
            ]
            .contains(&area)
        };
        std::iter::once(Self::UTC).chain(tzdb_data::TZ_NAMES.iter().filter(place).map(|name| Self { name }))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The clock on the wall there.
    pub fn clock(self, at: Timestamp) -> OffsetDateTime {
        let utc = at.utc();
        let offset = tzdb_data::find_tz(self.name.as_bytes())
            .and_then(|zone| zone.find_local_time_type(utc.unix_timestamp()).ok())
            .and_then(|kind| UtcOffset::from_whole_seconds(kind.ut_offset()).ok());
        // Within a day of the calendar's ends there may be no such clock.
        offset.and_then(|offset| utc.checked_to_offset(offset)).unwrap_or(utc)
    }

    /// A moment in full: "29 Nov 2026, 10:05:12 Europe/Berlin".
    pub fn moment(self, at: Timestamp) -> String {
        format!("{} {}", words::wall(self.clock(at)), self.name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_follows_the_seasons_of_a_place() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let read = |text: &str| berlin.moment(Timestamp::parse(text).unwrap());
        assert_eq!(read("2026-11-29T09:05:12Z"), "29 Nov 2026, 10:05:12 Europe/Berlin");
        assert_eq!(read("2026-07-01T22:30:00Z"), "2 Jul 2026, 00:30:00 Europe/Berlin");
        let kathmandu = Zone::named("Asia/Kathmandu").unwrap();
        let moment = kathmandu.moment(Timestamp::parse("2026-11-29T09:05:12Z").unwrap());
        assert_eq!(moment, "29 Nov 2026, 14:50:12 Asia/Kathmandu");
    }

    #[test]
    fn only_the_lists_own_names_are_zones() {
        assert_eq!(Zone::named("UTC"), Some(Zone::UTC));
        for wrong in ["", "europe/berlin", "Berlin", "../etc/passwd", "UTC+1"] {
            assert_eq!(Zone::named(wrong), None, "{wrong}");
        }
        let places: Vec<&str> = Zone::places().map(Zone::name).collect();
        assert_eq!(places[0], "UTC");
        assert!(places.contains(&"America/New_York") && !places.contains(&"Etc/GMT+1"));
        assert!(Zone::places().all(|zone| Zone::named(zone.name()) == Some(zone)));
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        for micros in [i64::MIN, i64::MAX, 0] {
            assert!(
                !Zone::named("Pacific/Kiritimati").unwrap().moment(Timestamp::from_micros(micros)).is_empty()
            );
        }
    }
}
