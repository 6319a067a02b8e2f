"use strict";
// Draws the page from its data. All text comes in as text nodes: nothing of it is ever read as markup.
{
  const report = JSON.parse(document.getElementById("data").textContent);
  const runs = report.runs, several = runs.length > 1;
  const TITLES = {bleu: "BLEU", chrf: "chrF", "chrf++": "chrF++", ter: "TER"};
  const COLOURS = 6, DASHES = ["solid", "dash", "dot", "dashdot"], NAMES = ["solid", "dashed", "dotted", "dash-dotted"];

  // --- elements ---

  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children.filter(child => child !== null));
    return element;
  };
  const section = name => document.getElementById(name);
  const text = (tag, content, className) => make(tag, {textContent: content, ...(className && {className})});
  const inAnyScript = (tag, content, className) => Object.assign(text(tag, content, className), {dir: "auto"});
  const count = value => value.toLocaleString("en-US");
  const fixed = (value, digits = 2) => value === null || value === undefined ? "–" : value.toFixed(digits);
  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = index => style(`--run-${index % COLOURS}`);
  const dot = index => {
    const element = make("span", {className: "dot"});
    element.style.background = `var(--run-${index % COLOURS})`;
    return element;
  };

  // Columns: [heading, class]; a cell is text or an element.
  const table = (columns, rows) => {
    const cell = (content, i) => content instanceof Node
      ? make("td", {className: columns[i][1]}, content)
      : inAnyScript("td", content, columns[i][1]);
    const head = make("tr", {}, ...columns.map(([title, kind]) => text("th", title, kind === "number" && kind)));
    const body = rows.map(row => make("tr", {}, ...row.map(cell)));
    return make("div", {className: "scroll"}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  };

  const card = (...children) => make("div", {className: "card"}, ...children);

  // Buttons of which one is pressed; `chosen` is called with its index, at once with the first.
  const picker = (labels, chosen) => {
    const buttons = labels.map((label, i) => make("button", {type: "button", textContent: label, onclick: () => press(i)}));
    const press = index => {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === index));
      chosen(index);
    };
    queueMicrotask(() => press(0));
    return make("div", {className: "pick", role: "group"}, ...buttons);
  };

  // A section with a part for each of several things, one of which is shown.
  const tabs = (place, items, draw) => {
    if (!items.length) return place.remove();
    const inside = make("div", {});
    const show = index => {
      inside.replaceChildren();
      draw(inside, items[index]);
    };
    if (items.length > 1) place.append(make("div", {className: "tabs"}, picker(items.map(item => item.label), show)));
    place.append(inside);
    if (items.length === 1) show(0);
  };

  // --- the top ---

  const overview = () => {
    const top = section("overview"), only = runs[0];
    const title = several ? `${runs.length} runs` : only.name;
    document.title = `${runs.map(run => run.name).join(", ")} – nmt report`;
    top.append(text("p", "nmt report", "kicker"), text("h1", title));
    if (!several) {
      const about = [only.languages, only.status].filter(Boolean).join("  ·  ");
      top.append(text("p", about, "about"));
    }
    const links = [...document.querySelectorAll("main > section")].map(part => {
      const words = part.querySelector("h2").textContent;
      return make("a", {href: `#${part.id}`, textContent: words});
    });
    top.append(make("nav", {}, ...links));
    top.append(several ? facts() : make("dl", {className: "tiles"}, ...only.facts.flat().map(tile)));
    const notes = runs.flatMap(run => run.notes.map(note => text("p", several ? `${run.name}: ${note}` : note)));
    if (notes.length) top.append(make("div", {className: "notes"}, ...notes));
    document.querySelector("footer").textContent = `Made by nmt ${report.nmt} report.`;
  };

  const tile = ([label, value, remark]) => make("div", {},
    text("dt", label), text("dd", value, "value"), text("dd", remark, "remark"));

  // What is a tile for one run is a row for several.
  const facts = () => {
    const groups = runs[0].facts.map((_, group) => runs.flatMap(run => (run.facts[group] ?? []).map(fact => fact[0])));
    const labels = new Set(groups.flat());
    const columns = [["", ""], ...runs.map(run => [run.name, ""])];
    const rows = [["", ...runs.map((run, i) => make("span", {}, dot(i), [run.languages, run.status].join(", ")))]];
    for (const label of labels) {
      const cells = runs.map(run => run.facts.flat().find(fact => fact[0] === label));
      rows.push([text("span", label, "muted"), ...cells.map(fact => fact
        ? make("span", {}, fact[1], text("div", fact[2], "small muted")) : "–")]);
    }
    return card(table(columns, rows));
  };

  // --- plots ---

  const plain = name => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const redraw = [];  // after a change between light and dark
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw.forEach(draw => draw()));

  const sizes = new ResizeObserver(entries => entries.forEach(({target}) => {
    const width = target.clientWidth;  // none in a tab that is not shown any more
    if (width && width !== target.layout.width) Plotly.relayout(target, {width});
  }));

  const plot = (place, traces, {x = {}, y = {}, ...more} = {}) => {
    if (!place.isConnected) return;  // of a tab that is not shown any more
    const axis = {
      gridcolor: style("--line"), zeroline: false, automargin: true, tickfont: {color: style("--muted")},
      fixedrange: !matchMedia("(hover: hover)").matches,  // a finger scrolls the page
    };
    const font = {family: getComputedStyle(document.body).fontFamily, size: 12, color: style("--text")};
    const layout = {
      width: place.clientWidth, margin: {l: 40, r: 16, t: 10, b: 34}, font, showlegend: false, hovermode: "x unified", dragmode: "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", ...more,
      hoverlabel: {bgcolor: style("--surface"), bordercolor: style("--line"), font},
      xaxis: {...axis, showgrid: false, ticklabelstandoff: 5, ...x}, yaxis: {...axis, ...y},
    };
    Plotly.react(place, traces, layout, {displayModeBar: false});
    sizes.observe(place);
  };

  const curves = () => {
    const place = section("curves");
    const valid = runs.flatMap(run => run.curves.valid), sets = [...new Set(valid.map(set => set.set))];
    const metrics = [...new Set(valid.flatMap(set => Object.keys(set.scores)))].filter(name => name !== "nll" && name !== "ppl");
    const charts = [
      ...metrics.map(key => ({key, title: TITLES[key] ?? key, about: `of real translations, on the validation set${sets.length > 1 ? "s" : ""}`, format: ".2f"})),
      {key: "nll", title: "Loss", about: "nats a target token, not smoothed", format: ".3f", late: true},
      {key: "ppl", title: "Perplexity", about: "logarithmic", type: "log", format: ".2f", late: true},
      {key: "loss", title: "Loss as it is optimised", about: "with its smoothing and other terms", format: ".3f", late: true},
      {key: "lr", title: "Learning rate", about: "", format: ".2e"},
      {key: "grad_norm", title: "Gradient norm", about: "before clipping, the mean of the updates", format: ".3f"},
      {key: "target_tokens_per_second", title: "Speed", about: "target tokens a second", zero: true, format: ",.0f"},
      {key: "memory_gb", title: "Memory", about: "GB, at the peak", zero: true, format: ".2f"},
    ].filter(chart => runs.some(run => [run.curves.train[chart.key], ...run.curves.valid.map(set => set.scores[chart.key])]
      .some(values => values?.some(value => value !== null))));
    if (!charts.length) return place.remove();

    const seconds = runs.flatMap(run => [run.curves.train, ...run.curves.valid].flatMap(columns => columns.seconds));
    const hours = seconds.some(value => value > 3 * 3600);
    const hidden = new Set();
    let overTime = false;
    const xs = columns => overTime ? columns.seconds.map(s => s === null ? null : s / (hours ? 3600 : 60)) : columns.step;
    const traces = ({key}) => runs.flatMap((run, index) => hidden.has(index) ? [] : tracesOf(run, index, key));
    const tracesOf = (run, index, key) => {
      const named = what => plain(several ? `${run.name}, ${what}` : what), line = {color: colour(index)};
      const {train, valid} = run.curves, found = [];
      if (train[key]?.length) {
        const mode = train.step.length > 1 ? "lines" : "markers";
        found.push({x: xs(train), y: train[key], mode, opacity: .65, line: {...line, width: 1.4}, name: named("training")});
      }
      valid.forEach(set => {
        const values = set.scores[key];
        if (!values) return;
        const only = wanted => list => list.filter((_, i) => Boolean(set.averaged[i]) === wanted);
        const x = xs(set), [steps, means] = [only(false), only(true)];
        const dash = DASHES[sets.indexOf(set.set) % DASHES.length], many = steps(values).length > 30;
        found.push({
          x: steps(x), y: steps(values), mode: many ? "lines" : "lines+markers", name: named(set.set),
          line: {...line, width: 2.2, dash}, marker: {...line, size: 6}, cliponaxis: false,
        }, {
          x: means(x), y: means(values), mode: "markers", name: named(`${set.set}, average of snapshots`),
          marker: {...line, size: 10, symbol: "diamond-open", line: {width: 2}},
        });
      });
      return found;
    };

    const plots = make("div", {className: "plots"});
    for (const chart of charts) {
      chart.place = make("div", {className: "plot"});
      plots.append(card(text("h3", chart.title), text("p", chart.about, "small muted"), chart.place));
    }
    // The first steps are far above all that comes later: the axis is that of what is seen from the first validation on.
    const late = ({type}, lines, starts) => {
      const scale = type === "log" ? Math.log10 : value => value;
      const values = lines.flatMap(({x, y}) => y.filter((value, i) => value !== null && x[i] >= Math.min(...starts))).map(scale);
      const [low, high] = [Math.min, Math.max].map(end => values.reduce((one, other) => end(one, other), values[0]));
      const range = [low - .06 * (high - low), high + .12 * (high - low)];
      return low < high ? {range, ...(type === "log" ? {dtick: "D2"} : {})} : {};
    };
    const draw = () => {
      const shown = runs.filter((_, index) => !hidden.has(index));
      const starts = shown.flatMap(run => run.curves.valid.map(columns => xs(columns)[0] ?? 0));
      const ends = shown.flatMap(run => [run.curves.train, ...run.curves.valid].map(columns => xs(columns).at(-1) ?? 0));
      const format = overTime ? {hoverformat: ".1f"} : {hoverformat: ",d", tickformat: ",d"};
      const title = {text: overTime ? (hours ? "hours" : "minutes") : "steps", font: {color: style("--muted")}, standoff: 6};
      const x = {title, ...format, range: [0, 1.03 * Math.max(...ends)]};  // the same in all charts
      charts.forEach(chart => {
        const lines = traces(chart), alone = lines.flatMap(line => line.y).length === 1;  // says something only beside zero
        plot(chart.place, lines, {x, y: {
          type: chart.type ?? "linear", hoverformat: chart.format, rangemode: chart.zero || alone ? "tozero" : "normal",
          ...(chart.type === "log" ? {tickformat: "~g"} : {}), ...(chart.late ? late(chart, lines, starts) : {}),
        }});
      });
    };
    redraw.push(draw);
    const choose = picker(["Steps", "Time"], index => {
      overTime = index === 1;
      draw();
    });
    const clock = seconds.some(value => value !== null);
    place.append(make("div", {className: "bar"}, clock ? choose : null, legend(hidden, sets, draw)), plots);
  };

  // What the lines are; several runs can be shown and hidden.
  const legend = (hidden, sets, draw) => {
    const drawn = sets.length > 1 ? ` (${sets.map((name, i) => `${NAMES[i % NAMES.length]} ${name}`).join(", ")})` : "";
    const trained = runs.some(run => run.curves.train.step.length);
    const mean = runs.some(run => run.curves.valid.some(set => set.averaged.some(Boolean)));
    const lines = inAnyScript("span", [trained ? "Thin lines: training." : "", sets.length ? `Dots: validation${drawn}.` : "",
      mean ? "Diamonds: average of the last snapshots." : "",
      trained && sets.length ? "Axes of losses fit what follows the first validation." : ""].join(" "), "small muted");
    if (!several) return lines;
    const buttons = runs.map((run, index) => {
      const toggle = () => {
        hidden.has(index) ? hidden.delete(index) : hidden.add(index);
        button.setAttribute("aria-pressed", !hidden.has(index));
        draw();
      };
      const button = make("button", {type: "button", onclick: toggle}, dot(index), run.name);
      button.setAttribute("aria-pressed", true);
      return button;
    });
    return make("div", {className: "runs", role: "group"}, ...buttons, lines);
  };

  const bars = (place, series, title, x = {}) => {
    const draw = () => plot(place, series.map(({name, x, y, index}) => series.length > 1  // outlines do not hide each other
      ? {x, y, name, mode: "lines", line: {shape: "hvh", color: colour(index), width: 1.8}}
      : {x, y, name, type: "bar", marker: {color: colour(index)}, opacity: .85}), {
      x: {title: {text: title, font: {color: style("--muted")}, standoff: 6}, ...x}, y: {hoverformat: ",d"}, bargap: .08,
    });
    redraw.push(draw);
    draw();
  };

  // --- scores ---

  const scores = () => {
    const rows = runs.flatMap((run, index) => run.scores.map(score => ({...score, run, index})));
    if (!rows.length) return section("scores").remove();
    const intervals = rows.some(row => row.interval);
    const columns = [
      ...(several ? [["Run", "short"]] : []), ["Set", ""], ["Metric", ""], ["Score", "number"],
      ...(intervals ? [["95% interval", "number"]] : []), ["Model", "short"], ["Signature and search", "code"],
    ];
    let before = "";
    const cells = rows.map(row => {
      const group = JSON.stringify([row.run.name, row.test, row.model, row.search]), first = group !== before;
      before = group;
      const signature = make("div", {}, row.signature, first ? text("div", row.search) : "");
      const lines = row.lines ? `${row.test}, ${count(row.lines)} lines` : row.test;
      const who = first ? make("span", {}, dot(row.index), row.run.name) : "";
      return [
        ...(several ? [who] : []), first ? lines : "", TITLES[row.metric] ?? row.metric, fixed(row.value),
        ...(intervals ? [row.interval ? row.interval.map(bound => fixed(bound)).join(" – ") : "–"] : []), first ? row.model : "", signature,
      ];
    });
    section("scores").append(card(table(columns, cells)));
  };

  // --- sentences ---

  const sentences = () => {
    const items = runs.flatMap(run => run.sentences.map(set => ({
      ...set, label: [several ? run.name : "", several && run.sentences.length === 1 ? "" : set.set].filter(Boolean).join(", "),
    })));
    tabs(section("sentences"), items, (place, set) => {
      const list = make("div", {}), histogram = make("div", {className: "plot"});
      const groups = ["worst", "middle", "best"].map(name => set.groups[name]);
      const choose = picker(["Worst", "Middle", "Best"], index => list.replaceChildren(...groups[index].map(sentence)));
      const about = make("p", {className: "small"},
        `The ${count(set.lines)} sentences of ${set.set} by chrF, as the best model translates them. In the translation, words that the reference lacks are `,
        text("mark", "marked so", "extra"), "; in the reference, words that the translation lacks are ", text("mark", "marked so", "missing"), ".");
      const shown = card(text("h3", "How many sentences have which chrF"), histogram);
      place.append(make("div", {className: "pair"}, make("div", {}, about, choose), shown), list);
      const width = 100 / set.histogram.length;
      bars(histogram, [{name: "sentences", x: set.histogram.map((_, i) => (i + .5) * width), y: set.histogram, index: 0}], "chrF", {range: [0, 100], dtick: 20});
    });
  };

  const sentence = one => {
    const marked = (parts, kind) => make("dd", {dir: "auto"}, ...parts.flatMap(([words, differs]) => {
      const shown = words.trimEnd();
      return differs ? [text("mark", shown, kind), words.slice(shown.length)] : [words];
    }));
    const reference = one.references > 1 ? `Nearest of ${one.references} references` : "Reference";
    return make("div", {className: "card sentence"},
      make("div", {className: "head"}, text("div", fixed(one.score, 1), "score"), text("div", `chrF, line ${count(one.number)}`, "small muted")),
      make("dl", {}, text("dt", "Source"), inAnyScript("dd", one.src), text("dt", "Translation"), marked(one.translation, "extra"),
        text("dt", reference), marked(one.reference, "missing")));
  };

  // --- data ---

  const corpora = () => {
    const items = runs.filter(run => run.data).map(run => ({...run.data, label: run.name}));
    tabs(section("corpora"), items, (place, data) => {
      if (data.suspicions.length) {
        place.append(make("div", {className: "notes", style: "margin: 0 0 .75rem"}, ...data.suspicions.map(found => text("p", found))));
      }
      const columns = [["Corpus", ""], ["Read", "number"], ["Kept", "number"], ["Dropped", "number"], ["Length correlation", "number"], ["Numbers agree", "number"]];
      const rows = data.corpora.map(one => [one.label, count(one.read), count(one.kept), count(one.read - one.kept),
        fixed(one.length_correlation), fixed(one.number_agreement)]);
      const sets = data.sets.map(([name, lines]) => [name, count(lines), "", "", "", ""]);
      place.append(card(table(columns, [...rows, ...sets])));
      if (data.lengths) place.append(lengths(data.lengths));
      place.append(drops(data.drops), faults(data.faults), usage(data));
    });
  };

  const lengths = ({from, width, src, tgt}) => {
    const histogram = make("div", {className: "plot"}), x = from.map(start => start + (width - 1) / 2);
    queueMicrotask(() => bars(histogram, [{name: "source", x, y: src, index: 0}, {name: "target", x, y: tgt, index: 1}], "pieces of a sentence, its end counted"));
    const key = make("p", {className: "small muted"}, dot(0), "source  ", dot(1), "target; the longest 0.5% are left out");
    return card(text("h3", "How long the sentences are"), key, histogram);
  };

  const drops = found => {
    const columns = [["Place", "code"], ["Source", "text"], ["Target", "text"]];
    const parts = found.map(({corpus, reason, count: pairs, kept, examples}) => make("details", {},
      text("summary", `${corpus}: ${count(pairs)} ${reason}${kept ? " (kept)" : ""}`),
      table(columns, examples.map(one => [one.where, one.src || "(empty)", one.tgt || "(empty)"]))));
    const nothing = text("p", "No pair was dropped.", "small muted");
    return card(text("h3", "What the filters dropped"), make("div", {}, ...(parts.length ? parts : [nothing])));
  };

  const faults = found => card(text("h3", "What is odd about the text"), found.length
    ? make("ul", {}, ...found.map(sentence => inAnyScript("li", sentence))) : text("p", "Nothing was found.", "small muted"));

  const usage = data => card(text("h3", "What the tokenizer makes of it"),
    text("p", `Vocabulary: ${data.vocabulary}.`, "small muted"),
    table([["", ""], ["Source", "number"], ["Target", "number"]], data.usage));

  // --- settings ---

  const settings = () => {
    const place = section("settings"), {runs: names, rows} = report.compared;
    if (names.length > 1) {
      const columns = [["Setting", "code"], ...names.map(name => [name, ""])];
      const differ = rows.map(([key, values]) => [key, ...values]);
      place.append(card(text("h3", "Where the runs differ"), rows.length ? table(columns, differ) : text("p", "Nowhere.", "small muted")));
      place.lastChild.style.marginBottom = ".75rem";
    }
    const items = runs.filter(run => run.settings).map(run => ({...run.settings, label: run.name}));
    tabs(place, items, (inside, {changes, all}) => {
      const columns = [["Setting", "code"], ["Value", "text"], ["Default", ""]];
      const known = changes.map(([key, value, preset]) => [key, value, preset || "–"]);
      inside.append(card(text("h3", "What differs from the defaults"), table(columns, known)),
        card(make("details", {}, text("summary", "All settings"), text("pre", all))));
    });
  };

  if (!document.querySelector("#maps .attention")) section("maps").remove();
  curves();
  scores();
  sentences();
  corpora();
  settings();
  overview();
}
