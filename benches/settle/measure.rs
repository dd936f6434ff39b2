//! Figures of several rounds, and what processes cost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A figure over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) unit: &'static str,
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl Figure {
    pub(crate) fn text(value: f64) -> String {
        if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
    }
}

/// Everything that was measured, in the order of first measure.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    order: Vec<String>,
    values: BTreeMap<String, (&'static str, Vec<f64>)>,
}

impl Figures {
    pub(crate) fn add(&mut self, name: impl Into<String>, unit: &'static str, value: f64) {
        let name = name.into();
        eprintln!("  {name}: {value:.3} {unit}");
        if !self.values.contains_key(&name) {
            self.order.push(name.clone());
        }
        self.values.entry(name).or_insert_with(|| (unit, Vec::new())).1.push(value);
    }

    pub(crate) fn rate(&mut self, name: impl Into<String>, count: usize, took: Duration) {
        self.add(name, "per s", count as f64 / took.as_secs_f64());
    }

    pub(crate) fn medians(&self) -> Vec<(&str, Figure)> {
        self.order
            .iter()
            .filter_map(|name| {
                let (unit, values) = self.values.get(name)?;
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let figure = Figure {
                    unit,
                    median: sorted[sorted.len() / 2],
                    lowest: *sorted.first()?,
                    highest: *sorted.last()?,
                };
                Some((name.as_str(), figure))
            })
            .collect()
    }

    pub(crate) fn json(&self) -> Value {
        let figures: Vec<Value> = self
            .medians()
            .into_iter()
            .map(|(name, figure)| {
                json!({
                    "name": name, "unit": figure.unit, "median": figure.median,
                    "lowest": figure.lowest, "highest": figure.highest,
                    "rounds": self.values[name].1,
                })
            })
            .collect();
        json!({ "figures": figures })
    }
}

/// CPU time that a process, and where wanted its children, has used.
#[derive(Debug)]
pub(crate) struct Cpu {
    began: Instant,
    own: Duration,
    server: Option<(u32, Duration)>,
}

impl Cpu {
    pub(crate) fn start(server: Option<u32>) -> Result<Self> {
        Ok(Self {
            began: Instant::now(),
            own: of_process(std::process::id())?,
            server: server.map(|pid| Ok::<_, anyhow::Error>((pid, of_family(pid)?))).transpose()?,
        })
    }

    /// Wall time, and CPU time of this process and the server's processes.
    pub(crate) fn stop(&self) -> Result<(Duration, Duration)> {
        let took = self.began.elapsed();
        let mut used = of_process(std::process::id())?.saturating_sub(self.own);
        if let Some((pid, before)) = self.server {
            used += of_family(pid)?.saturating_sub(before);
        }
        Ok((took, used))
    }
}

/// `utime` and `stime` of `/proc/PID/stat`, in the kernel's 100 ticks a second.
fn of_process(pid: u32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = text.rsplit_once(')').context("a process's statistics")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 =
        fields.get(11).context("utime")?.parse::<u64>()? + fields.get(12).context("stime")?.parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// A process and its children; those that end between two looks are missed, so connections are
/// kept open.
fn of_family(parent: u32) -> Result<Duration> {
    let mut sum = of_process(parent)?;
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let of =
            text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        if of == Some(parent) {
            sum += of_process(pid).unwrap_or_default();
        }
    }
    Ok(sum)
}

/// The most memory that this process has held, in MiB.
pub(crate) fn peak_memory() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).context("VmHWM")?;
    let kib: f64 = line.split_whitespace().nth(1).context("VmHWM")?.parse()?;
    Ok(kib / 1024.0)
}
