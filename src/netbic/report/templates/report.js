"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  document.documentElement.classList.add("script");
  const data = JSON.parse(document.getElementById("data").textContent);
  const signed = (value) => (Math.abs(value) >= 1000 ? String(Math.round(value)) : value.toPrecision(3)).replace("-", "\u2212");

  // One tooltip for everything. Text only: names are never markup.
  const tip = document.getElementById("tip");
  const showTip = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
    const top = event.clientY + 14 + height > innerHeight ? event.clientY - 14 - height : event.clientY + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  // Characters that change the text direction are escaped, as in the page itself.
  const shown = (name) => String(name).replace(/[\u202a-\u202e\u2066-\u2069]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16)}`);
  // Isolates (U+2068, U+2069) keep a right-to-left name from turning the numbers after it around.
  const isolated = (name) => `\u2068${shown(name)}\u2069`;
  // The position of the tooltip of an element that has the keyboard focus.
  const beside = (thing) => {
    const { right, bottom } = thing.getBoundingClientRect();
    return { clientX: right, clientY: bottom };
  };
  document.addEventListener("focusin", ({ target }) => {
    if (target.title && target.matches(":focus-visible")) showTip(beside(target), target.title);
  });
  document.addEventListener("focusout", hideTip);

  // ---- the table -------------------------------------------------------------------------------------------------
  const table = document.querySelector(".sortable");
  const valueOf = (cell) => {
    const value = cell.dataset.value;
    if (value === "" || value === "nan") return null;
    return cell.classList.contains("number") ? Number(value.replace("inf", "Infinity")) : value;
  };
  const sortBy = (header) => {
    const column = header.cellIndex;
    const numeric = header.classList.contains("number");
    const before = header.getAttribute("aria-sort");
    const usual = numeric && column > 0 ? "descending" : "ascending";
    const order = before === null ? usual : before === "ascending" ? "descending" : "ascending";
    all("th", header.parentNode).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", order);
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[column]), row]);
    const turn = order === "ascending" ? 1 : -1;
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);  // missing values come last
      return turn * (numeric ? a - b : a.localeCompare(b));
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  all("thead button", table).forEach((button) => button.addEventListener("click", () => sortBy(button.closest("th"))));

  // ---- modules open and close --------------------------------------------------------------------------------------
  const modules = all("details.module");
  const reveal = () => {
    const wanted = /^#module-(\d+)$/.exec(location.hash);
    if (!wanted) return;
    const module = modules[Number(wanted[1]) - 1];
    if (!module) return;
    module.open = true;
    module.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#module-"]');
    if (link?.getAttribute("href") === location.hash) reveal();  // the address is unchanged, but the module may be closed
  });
  all("[data-open]").forEach((button) => button.addEventListener("click", () => {
    modules.forEach((module) => { module.open = button.dataset.open === "all"; });
  }));
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...modules, ...all(".plots .found")].filter((part) => !part.open);
    closed.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));

  // ---- search ------------------------------------------------------------------------------------------------------
  const GROUPS = { u: ", up", d: ", down" };
  const holders = { genes: new Map(), samples: new Map() };
  const hold = (kind, at, number, text) => {
    if (!holders[kind].has(at)) holders[kind].set(at, []);
    holders[kind].get(at).push([number, text]);
  };
  data.modules.forEach((module, position) => {
    const number = position + 1;
    for (const [at, weight] of module.genes) hold("genes", at, number, signed(weight));
    if (!module.scores) for (const [at, weight] of module.samples) hold("samples", at, number, signed(weight));
    module.scores?.forEach((score, at) => {
      if (score !== null) hold("samples", at, number, `score ${signed(score)}${GROUPS[module.groups[at]] ?? ""}`);
    });
  });
  const entries = ["genes", "samples"].flatMap((kind) =>
    [...holders[kind]].map(([at, places]) => ({ kind, at, places, name: data[kind][at], key: data[kind][at].toLowerCase() })));
  const MOST = 25;
  const matches = (text) => {
    const key = text.trim().toLowerCase();
    if (!key) return [];
    const rank = (entry) => (entry.key === key ? 0 : entry.key.startsWith(key) ? 1 : 2);
    return entries.filter((entry) => entry.key.includes(key))
      .sort((a, b) => rank(a) - rank(b) || b.places.length - a.places.length || a.key.localeCompare(b.key));
  };
  const hit = (kind, at) => {
    all("circle.hit").forEach((circle) => circle.classList.remove("hit"));
    if (kind !== "genes") return;
    data.modules.forEach((module, position) => {
      const place = module.genes.findIndex(([gene]) => gene === at);
      modules[position].querySelector(`circle[data-at="${place}"]`)?.classList.add("hit");
    });
  };
  const answer = (entry) => {
    const item = element("li");
    const name = element("bdi", shown(entry.name), "name");
    name.title = shown(entry.name);
    item.append(name);
    if (entry.kind === "samples") item.append(element("span", "sample", "note"));
    for (const [number, text] of entry.places) {
      const link = element("a", `module ${number} (${text})`);
      link.href = `#module-${number}`;
      link.addEventListener("click", () => hit(entry.kind, entry.at));
      item.append(link);
    }
    return item;
  };
  const found = document.getElementById("found");
  const find = document.getElementById("find");
  find.addEventListener("input", () => {
    const some = matches(find.value);
    found.replaceChildren();
    if (!find.value.trim()) return;
    if (!some.length) {
      found.append(element("p", `No module contains a ${find.dataset.kinds} with this name.`, "note"));
      return;
    }
    const list = element("ul");
    list.append(...some.slice(0, MOST).map(answer));
    found.append(list);
    if (some.length > MOST) found.append(element("p", `and ${some.length - MOST} more: type more letters`, "note"));
  });
  find.form.addEventListener("submit", (event) => {
    event.preventDefault();
    found.querySelector("a")?.focus();
  });

  // ---- heatmaps and networks, when a module is opened ----------------------------------------------------------------
  const labelled = (variable, at) => {
    const { levels, values } = data.labels[variable];
    return values[at] === null ? "missing" : isolated(levels.length ? levels[values[at]] : values[at]);
  };
  // The levels of a heatmap, read from its PNG: a zero and a level per sample for each gene; 0 is missing, 128 is zero.
  const levelsOf = async (image) => {
    const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (letter) => letter.charCodeAt(0));
    const lengthAt = (at) => new DataView(bytes.buffer).getUint32(at);
    let at = 8;
    while (String.fromCharCode(...bytes.subarray(at + 4, at + 8)) !== "IDAT") at += 12 + lengthAt(at);
    const packed = new Blob([bytes.subarray(at + 8, at + 8 + lengthAt(at))]).stream();
    return new Uint8Array(await new Response(packed.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  };
  const heatmapTips = (image, { heatmap, scores, groups }) => {
    const known = heatmap.strips.filter((variable) => Object.hasOwn(data.labels, variable));
    const ofSample = (at) => (!scores || scores[at] === null ? ""
      : `\nscore of the sample ${signed(scores[at])}${GROUPS[groups[at]] ?? ""}`)
      + known.map((variable) => `\n${isolated(variable)}: ${labelled(variable, at)}`).join("");
    const reading = levelsOf(image);
    const [rows, columns] = [heatmap.genes.length, heatmap.samples.length];
    image.addEventListener("pointermove", async (event) => {
      const levels = await reading;
      const row = Math.min(rows - 1, Math.max(0, Math.floor((event.offsetY / image.clientHeight) * rows)));
      const column = Math.min(columns - 1, Math.max(0, Math.floor((event.offsetX / image.clientWidth) * columns)));
      const level = levels[row * (columns + 1) + column + 1];
      const edge = level === 1 ? "\u2264 " : level === 255 ? "\u2265 " : "";
      const value = level === 0 ? "missing" : `${edge}${signed(((level - 128) / 127) * heatmap.limit)}`;
      showTip(event, `${isolated(data.genes[heatmap.genes[row]])}\n${isolated(data.samples[heatmap.samples[column]])}\n${value}${ofSample(heatmap.samples[column])}`);
    });
    image.addEventListener("pointerleave", hideTip);
  };
  const networkTips = (drawing, module) => {
    const circles = new Map(all("circle", drawing).map((circle) => [Number(circle.dataset.at), circle]));
    const touched = drawing.querySelector(".touched");
    const neighbours = new Map([...circles.keys()].map((at) => [at, []]));
    for (let i = 0; i < module.edges.length; i += 2) {
      neighbours.get(module.edges[i]).push(module.edges[i + 1]);
      neighbours.get(module.edges[i + 1]).push(module.edges[i]);
    }
    const place = (at) => `${circles.get(at).getAttribute("cx")} ${circles.get(at).getAttribute("cy")}`;
    const leave = () => {
      touched.setAttribute("d", "");
      all(".reached", drawing).forEach((circle) => circle.classList.remove("reached"));
      hideTip();
    };
    const texts = new Map();
    const enter = (at, where) => {
      touched.setAttribute("d", neighbours.get(at).map((other) => `M${place(at)}L${place(other)}`).join(""));
      showTip(where, texts.get(at));
    };
    circles.forEach((circle, at) => {
      const title = circle.querySelector("title");
      const count = /[\d,]+ neighbours?$/.exec(title.textContent)[0];
      title.remove();  // otherwise the browser shows a second tooltip
      const [gene, weight] = module.genes[at];
      texts.set(at, `${isolated(data.genes[gene])}\nweight ${signed(weight)}\n${count} in the module`);
      circle.addEventListener("pointerenter", (event) => enter(at, event));
      circle.addEventListener("pointerleave", leave);
    });
    // By keyboard: arrow keys go through the genes, by decreasing weight.
    const order = [...circles.keys()].sort((a, b) => a - b);
    let reached = -1;
    drawing.tabIndex = 0;
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      reached = Math.min(order.length - 1, Math.max(0, reached + step));
      leave();
      circles.get(order[reached]).classList.add("reached");
      enter(order[reached], beside(circles.get(order[reached])));
    });
    drawing.addEventListener("blur", leave);
  };
  modules.forEach((details, position) => {
    details.addEventListener("toggle", () => {
      const module = data.modules[position];
      const image = details.querySelector(".heatmap .values");
      const drawing = details.querySelector(".network svg");
      if (image && module.heatmap) heatmapTips(image, module);
      if (drawing) networkTips(drawing, module);
      all("[data-save]", details).forEach((figure) => offer(figure, position + 1));
    }, { once: true });
  });

  // ---- downloads ---------------------------------------------------------------------------------------------------
  // Spreadsheets evaluate text that begins like this as a formula; after an apostrophe it stays text.
  const formula = /^\s*[=+\-@]/;
  const field = (value) => {  // quoted as pandas and spreadsheets read it
    if (typeof value === "number") return String(value);
    const text = formula.test(value) ? `'${value}` : value;
    return /[\t\r\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const inTable = (cell) => {
    const number = cell.classList.contains("number") && cell.dataset.value !== "" ? Number(cell.dataset.value) : NaN;
    return Number.isNaN(number) ? cell.dataset.value : number;
  };
  const saveAs = (name, content) => {
    const link = element("a");
    link.href = URL.createObjectURL(content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const save = (name, rows) => {
    const text = rows.map((row) => `${row.map(field).join("\t")}\n`).join("");
    saveAs(name, new Blob([text], { type: "text/tab-separated-values" }));
  };
  const membersOf = (number) => ["genes", "samples"].flatMap((kind) =>
    data.modules[number - 1][kind].map(([at, weight]) => [number, kind === "genes" ? "gene" : "sample", data[kind][at], weight]));
  const columns = ["module", "axis", "name", "weight"];
  const downloads = {
    modules: () => save("modules-table.tsv", [
      all("thead th", table).map((header) => header.dataset.name),
      ...[...table.tBodies[0].rows].map((row) => [...row.cells].map(inTable)),
    ]),
    members: () => save("members.tsv", [columns, ...data.modules.flatMap((_, position) => membersOf(position + 1))]),
    module: (button) => save(`module-${button.dataset.module}.tsv`, [columns, ...membersOf(Number(button.dataset.module))]),
  };
  all("[data-download]").forEach((button) =>
    button.addEventListener("click", () => downloads[button.dataset.download](button)));

  // ---- lists to copy ------------------------------------------------------------------------------------------------
  const namesOf = (kind, side, module) => {
    const sign = side === "up" ? 1 : -1;
    const ofSign = (pairs) => pairs.filter(([, weight]) => weight * sign > 0).map(([at]) => at);
    if (kind === "gene") return ofSign(module.genes).map((at) => data.genes[at]);
    const { scores, groups } = module;
    const own = !scores ? ofSign(module.samples) : scores.map((_, at) => at).filter((at) => groups[at] === side[0])
      .sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a]));
    return own.map((at) => data.samples[at]);
  };
  // Browsers may refuse the clipboard to a page that was opened as a file; they allow to copy a selection.
  const copySelected = (text) => {
    const area = element("textarea", undefined, "unseen");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copySelected(text);
    }
  };
  all("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
    const { copy, side, module } = button.dataset;
    const names = namesOf(copy, side, data.modules[Number(module) - 1]);
    const lines = names.map((name) => (formula.test(name) ? `'${name}` : name).replace(/[\r\n\u2028\u2029]+/g, " "));
    const done = await copyText(`${lines.join("\n")}\n`);
    button.focus();
    button.closest("p").querySelector(".copied").textContent = done
      ? `Copied ${names.length} ${copy}${names.length === 1 ? "" : "s"}` : "The browser does not allow to copy: select the names below";
  }));

  // ---- figures to save ------------------------------------------------------------------------------------------------
  const SPACE = "http://www.w3.org/2000/svg";
  const root = document.documentElement;
  const shape = (tag, attributes, text) => {
    const made = document.createElementNS(SPACE, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // Figures are saved on white, whatever the theme of the page is.
  const onWhite = (read) => {
    root.classList.add("on-white");
    const found = read();
    root.classList.remove("on-white");
    return found;
  };
  const PAINT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "paint-order", "vector-effect"];
  const LETTERS = ["font-family", "font-size", "font-weight", "text-anchor"];
  // A copy of a drawing that has its colours as attributes instead of a style sheet.
  const painted = (drawing) => onWhite(() => {
    const copy = drawing.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [drawing, ...drawing.querySelectorAll("*")].forEach((original, at) => {
      const style = getComputedStyle(original);
      const wanted = original.tagName === "text" ? [...PAINT, ...LETTERS] : original === drawing ? [] : PAINT;
      wanted.forEach((name) => copies[at].setAttribute(name, style.getPropertyValue(name)));
      ["class", "data-at", "tabindex", "href"].forEach((name) => copies[at].removeAttribute(name));
    });
    return copy;
  });
  const INK = { fill: "#1d1f21", "font-family": "sans-serif", "font-size": 14 };
  const pen = element("canvas").getContext("2d");
  const written = (text, x, y, more = {}) => shape("text", { x, y, ...INK, ...more }, text);
  const widthOf = (text) => { pen.font = "14px sans-serif"; return pen.measureText(text).width; };
  const pixels = (image, x, y, width, height) => shape("image", {
    x, y, width, height, href: image.src, preserveAspectRatio: "none", "image-rendering": "pixelated",
  });
  const sheet = (width, height, parts) => {
    const made = shape("svg", { viewBox: `0 0 ${width} ${height}` });
    made.append(...parts);
    return made;
  };
  const heading = (figure) => figure.closest("details.module").querySelector("summary h3").textContent;
  const drawings = {
    network: (figure) => painted(figure.querySelector("svg")),
    survival: (figure) => painted(figure.querySelector("svg")),
    chart: (figure) => painted(figure.querySelector("svg")),
    boxes: (figure) => {
      const rows = all("tbody tr", figure);
      const parts = [written(`${heading(figure)}: scores by ${figure.closest("details").querySelector("bdi").textContent}`, 10, 22)];
      rows.forEach((row, at) => {
        const boxes = painted(row.querySelector("svg"));
        Object.entries({ x: 240, y: 36 + 30 * at, width: 600, height: 26 }).forEach(([name, value]) => boxes.setAttribute(name, value));
        parts.push(written(row.querySelector("th").textContent, 230, 54 + 30 * at, { "text-anchor": "end" }), boxes);
      });
      const bottom = 36 + 30 * rows.length;
      all(".ticks text", figure).forEach((tick) => {
        const x = 240 + 6 * parseFloat(tick.getAttribute("x"));
        parts.push(shape("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, stroke: "#5a5f64" }), written(tick.textContent, x, bottom + 20, { "text-anchor": "middle" }));
      });
      return sheet(870, bottom + 30, parts);
    },
    heatmap: (figure) => {
      const parts = [written(`${heading(figure)}: ${figure.querySelector(".values").alt.split(": ")[1]}`, 10, 22)];
      let y = 34;
      all(".strip", figure).forEach((strip) => {
        const keys = strip.previousElementSibling;
        const name = keys.querySelector("b").textContent;
        parts.push(written(name, 10, y + 14, { "font-weight": "bold" }));
        let x = 24 + 1.1 * widthOf(name);
        all(".key", keys).forEach((key) => {
          const width = 31 + widthOf(key.textContent);
          if (x + width > 890 && x > 10) [x, y] = [10, y + 18];
          const fill = key.querySelector("rect").getAttribute("fill");
          parts.push(shape("rect", { x, y: y + 3, width: 12, height: 12, fill }), written(key.textContent, x + 17, y + 14));
          x += width;
        });
        parts.push(pixels(strip, 10, y + 20, 880, 12));
        y += 38;
      });
      parts.push(pixels(figure.querySelector(".values"), 10, y, 880, 460));
      all(".row-names text", figure).forEach((gene) => parts.push(written(gene.textContent, 896, y + 4.6 * parseFloat(gene.getAttribute("y")) + 4, { "font-size": 11 })));
      const [low, high] = all(".scale span", figure).map((end) => end.textContent);
      parts.push(written(low, 10, y + 486), pixels(figure.querySelector(".scale img"), 20 + widthOf(low), y + 475, 120, 12));
      parts.push(written(high, 150 + widthOf(low), y + 486));
      return sheet(990, y + 500, parts);
    },
  };
  const MARGIN = 10;
  const asText = (drawing) => {
    const inner = drawing.getAttribute("viewBox").split(" ").map(Number);
    const [x, y, width, height] = [inner[0] - MARGIN, inner[1] - MARGIN, inner[2] + 2 * MARGIN, inner[3] + 2 * MARGIN];
    Object.entries({ viewBox: `${x} ${y} ${width} ${height}`, width, height }).forEach(([name, value]) => drawing.setAttribute(name, value));
    drawing.prepend(shape("rect", { x, y, width, height, fill: "white" }));
    return [new XMLSerializer().serializeToString(drawing), width, height];
  };
  const asImage = (text, width, height) => new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = element("canvas");
      const scale = Math.max(2, 1600 / width);
      [canvas.width, canvas.height] = [Math.round(scale * width), Math.round(scale * height)];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
  const saveFigure = async (figure, format, name) => {
    const [text, width, height] = asText(drawings[figure.dataset.save](figure));
    const content = format === "svg" ? new Blob([text], { type: "image/svg+xml" }) : await asImage(text, width, height);
    saveAs(`${name}.${format}`, content);
  };
  const inFileName = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 40) || "figure";
  const nameOf = (figure, number) => {
    const { save: kind, name } = figure.dataset;
    if (kind === "chart") return `chart-${name}`;
    const variable = figure.closest(".plots details")?.querySelector("bdi").textContent;
    return `module-${number}-${kind}${variable ? `-${inFileName(variable)}` : ""}`;
  };
  const offer = (figure, number) => {
    if (!figure.querySelector("svg, img")) return;  // there is nothing to draw
    const holder = element("p", undefined, "save");
    for (const format of ["svg", "png"]) {
      const button = element("button", format.toUpperCase());
      button.type = "button";
      button.title = `Save this figure as ${format.toUpperCase()}`;
      button.addEventListener("click", () => saveFigure(figure, format, nameOf(figure, number)));
      holder.append(button);
    }
    figure.append(holder);
  };

  // ---- charts: the page's own tooltip instead of the browser's, also for what is reached by keyboard --------------------
  all(".chart").forEach((figure) => {
    all("title", figure).forEach((title) => {
      title.parentNode.setAttribute("aria-label", title.textContent);
      title.remove();
    });
    // Listeners of the figure: Chromium lets the keyboard stop at drawings that listen to the focus.
    figure.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".chart svg [aria-label]");
      if (mark) showTip(event, mark.getAttribute("aria-label"));
      else hideTip();
    });
    figure.addEventListener("pointerleave", hideTip);
    figure.addEventListener("focusin", ({ target }) => {
      if (target.matches(".chart svg a:focus-visible")) showTip(beside(target), target.getAttribute("aria-label"));
    });
    offer(figure);
  });

  reveal();
})();
