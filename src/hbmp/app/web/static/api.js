// Requests to the server: JSON with the token if one is needed, and pictures as object URLs, each requested once.
const TOKEN = "hbmp-token";
const pictures = new Map();
const KEPT = 600;
let dialogResult = null;

function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  if (!token) return more;
  const bytes = String.fromCharCode(...new TextEncoder().encode(token)); // headers take no other letters
  return { ...more, Authorization: `Bearer ${bytes}` };
}

function askForToken() {
  dialogResult ??= new Promise((resolve) => {
    const dialog = document.getElementById("token-dialog");
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(TOKEN, document.getElementById("token").value);
      dialogResult = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return dialogResult;
}

async function request(path, options = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const response = await fetch(path, { ...options, headers: headers(options.headers) });
    if (response.status === 401) {
      await askForToken();
    } else if (response.status === 503 && attempt < 5) {
      await new Promise((wait) => setTimeout(wait, 300 * (attempt + 1)));
    } else if (response.ok) {
      return response;
    } else {
      const refusal = await response.json().catch(() => ({}));
      throw new Error(refusal.detail || `The server answered ${response.status}.`);
    }
  }
}

export async function get(path, signal) {
  return (await request(path, { signal })).json();
}

export async function post(path, body, signal) {
  const json = !(body instanceof FormData);
  const options = { method: "POST", signal, body: json ? JSON.stringify(body) : body };
  if (json) options.headers = { "Content-Type": "application/json" };
  return (await request(path, options)).json();
}

export function picture(id) {
  if (!pictures.has(id)) {
    if (pictures.size >= KEPT) {
      const [oldest, url] = pictures.entries().next().value;
      pictures.delete(oldest);
      url.then(URL.revokeObjectURL).catch(() => {});
    }
    const url = request(`items/${encodeURIComponent(id)}/picture`).then(async (response) => URL.createObjectURL(await response.blob()));
    url.catch(() => pictures.delete(id));
    pictures.set(id, url);
  }
  return pictures.get(id);
}

export function show(image, id) {
  image.dataset.id = String(id);
  image.title = "";
  const mine = () => image.dataset.id === String(id);
  picture(id).then((url) => { if (mine()) image.src = url; }).catch((error) => {
    if (!mine()) return; // an item without a picture must not show another's
    image.removeAttribute("src");
    image.title = error.message;
  });
}

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function drawn(name, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
