//! A Chromium of its own for each test, driven by what a person sees: labels, texts, buttons.
//!
//! Every helper waits for what it names and panics with the page's text when it does not come.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use axum::http::Method;
use base64::{Engine, engine::general_purpose::STANDARD};
use fantoccini::{
    Client, ClientBuilder, Locator, elements::Element, error::CmdError, wd::WebDriverCompatibleCommand,
};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

const PATIENCE: Duration = Duration::from_secs(15);

/// Of chromedriver with a page or a script, which it would wait minutes for.
const PAGE_PATIENCE: Duration = Duration::from_secs(45);

/// How a person's browser is set up.
pub(crate) struct Setup {
    pub(crate) script: bool,
    pub(crate) dark: bool,
    /// Of the page, in CSS pixels.
    pub(crate) width: u32,
}

impl Default for Setup {
    fn default() -> Self {
        Self { script: true, dark: false, width: 1280 }
    }
}

pub(crate) struct Browser {
    /// For what the helpers do not cover.
    pub(crate) client: Client,
    // Declared, and so dropped, in this order: the folder goes when nobody writes to it any more.
    _driver: Driver,
    folder: TempDir,
}

impl Browser {
    pub(crate) async fn open(setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder for all that the browser writes");
        let driver = Driver::start(folder.path());
        let capabilities = capabilities(&setup, folder.path());
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(serde_json::from_value(capabilities).expect("capabilities are an object"))
            .connect(&driver.url)
            .await
            .expect("Chromium starts; see tests/run for the packages it needs");
        let browser = Self { client, _driver: driver, folder };
        browser.set_width(setup.width).await;
        browser.set_dark(setup.dark).await;
        browser
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.client.goto(url).await.unwrap_or_else(|error| panic!("going to {url}: {error}"));
    }

    pub(crate) async fn set_width(&self, width: u32) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    pub(crate) async fn set_dark(&self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        // Without transitions, in whose midst a look at the page would find colours of no scheme.
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Clicks the one visible `tag` with this text, as assistive technology reads it: all of it,
    /// runs of white space taken as one space.
    pub(crate) async fn click_text(&self, tag: &str, text: &str) {
        let found = self.visible(&format!("//{tag}[normalize-space()={}]", quoted(text))).await;
        found.click().await.unwrap_or_else(|error| panic!("clicking {tag} “{text}”: {error}"));
    }

    /// Fills in the control under the one visible label with this text; a hint in an element of its
    /// own, or a control inside the label, is not counted to it. A list takes the option's text, a
    /// checkbox or a radio button is clicked and takes an empty value.
    pub(crate) async fn fill_label(&self, label: &str, value: &str) {
        let text = quoted(label);
        let label_is =
            format!("normalize-space()={text} or normalize-space(text()[normalize-space()][1])={text}");
        let control = format!(
            "//*[self::input or self::textarea or self::select]\
             [@id=//label[{label_is}]/@for or ancestor::label[{label_is}]]"
        );
        let control = self.visible(&control).await;
        if let Err(error) = fill(&control, value).await {
            panic!("filling in “{label}”: {error}");
        }
    }

    /// The text of the one file that was downloaded.
    pub(crate) async fn downloaded(&self) -> String {
        let folder = self.folder.path().join(DOWNLOADS);
        let file = self
            .wait_for("a download", async || {
                let files = fs::read_dir(&folder).map_err(|error| error.to_string())?;
                let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
                // One that is still written has another name.
                let done = files.len() == 1 && files[0].extension().is_none_or(|it| it != "crdownload");
                if done { Ok(files.remove(0)) } else { Err(format!("{files:?}")) }
            })
            .await;
        fs::read_to_string(file).expect("a text")
    }

    /// The visible text of the one visible element that matches.
    pub(crate) async fn text(&self, css: &str) -> String {
        let found = self.wait_for(css, || self.one_visible(Locator::Css(css))).await;
        found.text().await.unwrap_or_else(|error| panic!("reading {css}: {error}"))
    }

    pub(crate) async fn wait_for_text(&self, text: &str) {
        self.wait_for(text, async || {
            let page = self.page_text().await.map_err(|error| error.to_string())?;
            if page.contains(text) { Ok(()) } else { Err("not on the page".into()) }
        })
        .await;
    }

    /// Errors that the console received since this was last asked: scripts that failed, resources
    /// that did not load, breaches of the content security policy.
    pub(crate) async fn console_errors(&self) -> Vec<String> {
        let entries = self.post("se/log", json!({ "type": "browser" })).await;
        let entries = entries.as_array().expect("the log is a list");
        let errors = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        errors.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Writes the page from top to bottom, as wide as the viewport, as a PNG.
    pub(crate) async fn screenshot(&self, path: &Path) {
        let metrics = self.devtools("Page.getLayoutMetrics", json!({})).await;
        let (width, height) =
            (&metrics["cssLayoutViewport"]["clientWidth"], &metrics["cssContentSize"]["height"]);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let options = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let image = self.devtools("Page.captureScreenshot", options).await;
        let image = STANDARD.decode(image["data"].as_str().expect("an image")).expect("base64");
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("the screenshot's folder");
        }
        fs::write(path, image).expect("the screenshot");
    }

    async fn visible(&self, xpath: &str) -> Element {
        self.wait_for(xpath, || self.one_visible(Locator::XPath(xpath))).await
    }

    /// One, because a person who sees two would not know which is meant.
    async fn one_visible(&self, locator: Locator<'_>) -> Result<Element, String> {
        let mut visible = Vec::new();
        for element in self.client.find_all(locator).await.map_err(|error| error.to_string())? {
            if element.is_displayed().await.map_err(|error| error.to_string())? {
                visible.push(element);
            }
        }
        match visible.len() {
            1 => Ok(visible.remove(0)),
            many => Err(format!("{many} are visible, one is meant")),
        }
    }

    async fn wait_for<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
        let start = Instant::now();
        loop {
            match look().await {
                Ok(found) => return found,
                Err(_) if start.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(30)).await,
                Err(why) => panic!(
                    "{what}: {why}\n{:?} reads:\n{}",
                    self.client.current_url().await.map(String::from),
                    self.page_text().await.unwrap_or_else(|error| error.to_string())
                ),
            }
        }
    }

    async fn page_text(&self) -> Result<String, CmdError> {
        self.client.find(Locator::Css("body")).await?.text().await
    }

    /// What a script of ours makes of the page. The content security policy, which is for the
    /// page's own scripts, does not hold it up.
    pub(crate) async fn evaluate(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute(script, arguments).await.unwrap_or_else(|error| panic!("a script: {error}"))
    }

    /// A command of the browser's developer tools.
    pub(crate) async fn devtools(&self, command: &str, params: Value) -> Value {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": params })).await
    }

    async fn post(&self, path: &'static str, body: Value) -> Value {
        let answer = self.client.issue_cmd(Post { path, body: body.to_string() }).await;
        answer.unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }
}

async fn fill(control: &Element, value: &str) -> Result<(), CmdError> {
    let kind = control.attr("type").await?;
    if control.tag_name().await? == "select" {
        let option = format!(".//option[normalize-space()={}]", quoted(value));
        control.find(Locator::XPath(&option)).await?.click().await
    } else if matches!(kind.as_deref(), Some("checkbox" | "radio")) {
        control.click().await
    } else {
        control.clear().await?;
        control.send_keys(value).await
    }
}

/// A text as a literal of `XPath`, which knows no escapes.
fn quoted(text: &str) -> String {
    if !text.contains('\'') {
        return format!("'{text}'");
    }
    assert!(!text.contains('"'), "a text with both kinds of quotes: {text}");
    format!("\"{text}\"")
}

/// Inside a browser's own folder.
const DOWNLOADS: &str = "downloads";

fn capabilities(setup: &Setup, folder: &Path) -> Value {
    let mut options = json!({
        "args": [
            "--headless=new",
            // Tests run as root in containers, where Chromium cannot set up its sandbox; the pages
            // are our own.
            "--no-sandbox",
            // /dev/shm is a few megabytes there.
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--no-first-run",
            // The viewport is as wide as a test says.
            "--hide-scrollbars",
            // Nothing but the page under test: no traffic of the browser's own.
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-quic",
            "--disable-sync",
            // A host of the house's own network, as far as the browser can tell.
            "--host-resolver-rules=MAP desk.test 127.0.0.1",
            format!("--user-data-dir={}", folder.join("profile").display()),
        ],
        // 2: blocked, as by a person's own settings.
        "prefs": {
            "profile.managed_default_content_settings.javascript": if setup.script { 1 } else { 2 },
            "download.default_directory": folder.join(DOWNLOADS),
            "download.prompt_for_download": false,
        },
    });
    if let Ok(chromium) = env::var("DLO_TEST_CHROMIUM") {
        options["binary"] = chromium.into();
    }
    json!({
        "goog:chromeOptions": options,
        "goog:loggingPrefs": { "browser": "ALL" },
        // Milliseconds: a page that does not come fails the test that asked for it, with its address.
        "timeouts": { "pageLoad": PAGE_PATIENCE.as_millis(), "script": PAGE_PATIENCE.as_millis() },
    })
}

/// A command of chromedriver's that the standard, and so the client library, does not have.
#[derive(Debug)]
struct Post {
    path: &'static str,
    body: String,
}

impl WebDriverCompatibleCommand for Post {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.clone()))
    }
}

/// A chromedriver on a port of its own.
struct Driver {
    url: String,
    process: Child,
    /// Kept open: writing to a closed one would end chromedriver.
    _output: BufReader<ChildStdout>,
}

impl Driver {
    fn start(folder: &Path) -> Self {
        // A dead man's switch: the shell ends its process group, which chromedriver and Chromium
        // stay in, once its input closes. That happens when this process ends in whatever way,
        // killed included, and nothing is left behind.
        let mut process = Command::new("sh")
            .args(["-c", r#""$0" --port=0 & read -r _; kill -KILL 0"#])
            .arg(chromedriver())
            .env("TMPDIR", folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("ChromeDriver was started successfully on port ")?
                .trim_end_matches('.')
                .parse::<u16>()
                .ok()
        });
        let port = port.expect("chromedriver names its port");
        Self { url: format!("http://127.0.0.1:{port}/"), process, _output: output }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Nothing to do about a failure: the system reaps what is left when this process ends.
        let _ = self.process.wait();
    }
}

fn chromedriver() -> PathBuf {
    let in_path = || {
        env::split_paths(&env::var_os("PATH")?)
            .map(|dir| dir.join("chromedriver"))
            .find(|file| file.is_file())
    };
    env::var_os("DLO_TEST_CHROMEDRIVER").map(PathBuf::from).or_else(in_path).unwrap_or_else(|| {
        panic!("no chromedriver in DLO_TEST_CHROMEDRIVER or PATH: run the tests with tests/run")
    })
}
