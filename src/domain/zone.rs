//! Time zones: where a reader sits. The data is the IANA's, inside the program, so that every
//! machine tells the same time.

use std::fmt;
use std::time::Duration;

use time::{Date, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

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

    /// When the clock on the wall there shows a day and a time. Where clocks are put back it shows
    /// them twice, and the later moment is meant; where they are put forward it skips them, and the
    /// moment is meant that is as long after the change as the time lies within what is skipped:
    /// the later one of the two that could be meant, so that nothing comes too early.
    pub fn at(self, wall: PrimitiveDateTime) -> Timestamp {
        self.readings(wall)[1]
    }

    /// The first moment of a day there.
    pub fn opening(self, day: Date) -> Timestamp {
        self.readings(PrimitiveDateTime::new(day, Time::MIDNIGHT))[0]
    }

    /// The first and the last moment at which the clock shows this; the same twice but where clocks
    /// are put back.
    fn readings(self, wall: PrimitiveDateTime) -> [Timestamp; 2] {
        const DAY: Duration = Duration::from_hours(24);
        let here = wall.assume_utc();
        let read = i64::try_from(here.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX);
        // Before and after whatever change is near: no zone is a day away from UTC.
        let mut moments = [Timestamp::minus, Timestamp::plus].map(|towards| {
            let offset = self.clock(towards(Timestamp::from_micros(read), DAY)).offset();
            Timestamp::from_micros(read.saturating_sub(i64::from(offset.whole_seconds()) * 1_000_000))
        });
        moments.sort_unstable();
        let [first, last] = moments;
        let shows = |at: Timestamp| {
            let clock = self.clock(at);
            PrimitiveDateTime::new(clock.date(), clock.time()) == wall
        };
        match (shows(first), shows(last)) {
            (true, true) => [first, last],
            (true, false) => [first, first],
            (false, _) => [last, last],
        }
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
    fn a_time_on_the_wall_is_a_moment_and_the_later_one_of_two() {
        let at = |zone: &str, wall: &str| {
            let wall = Timestamp::parse(&format!("{wall}Z")).unwrap().utc();
            Zone::named(zone).unwrap().at(PrimitiveDateTime::new(wall.date(), wall.time()))
        };
        for (zone, wall, moment) in [
            ("UTC", "2026-11-30T09:00:00", "2026-11-30T09:00:00Z"),
            ("Europe/Berlin", "2026-11-30T09:00:00", "2026-11-30T08:00:00Z"),
            ("Asia/Kathmandu", "2026-11-30T09:00:00", "2026-11-30T03:15:00Z"),
            ("Pacific/Kiritimati", "2026-11-30T09:00:00", "2026-11-29T19:00:00Z"),
            // Put forward from 2:00 to 3:00: before, within and after.
            ("Europe/Berlin", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z"),
            ("Europe/Berlin", "2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
            ("Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"),
            // Put back from 3:00 to 2:00: before, within and after.
            ("Europe/Berlin", "2026-10-25T01:59:59", "2026-10-24T23:59:59Z"),
            ("Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T01:30:00Z"),
            ("Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"),
        ] {
            assert_eq!(at(zone, wall), Timestamp::parse(moment).unwrap(), "{wall} {zone}");
        }
    }

    #[test]
    fn a_day_begins_with_its_first_moment() {
        let opening = |zone: &str, day: &str| {
            Zone::named(zone).unwrap().opening(Timestamp::parse(day).unwrap().utc().date())
        };
        for (zone, day, moment) in [
            ("Asia/Kolkata", "2026-11-29", "2026-11-28T18:30:00Z"),
            // Havana puts its clocks back from 1:00 to 0:00, and forward from 0:00 to 1:00.
            ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"),
            ("America/Havana", "2026-03-08", "2026-03-08T05:00:00Z"),
        ] {
            assert_eq!(opening(zone, day), Timestamp::parse(moment).unwrap(), "{day} {zone}");
        }
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
