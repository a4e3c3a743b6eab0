-- For wrk: POSTs one JSON message again and again. Arguments: a file with the body, then headers as name=value.
function init(args)
  wrk.method = "POST"
  wrk.body = io.open(args[1]):read("*a")
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Accept"] = "application/json, text/event-stream"
  for at = 2, #args do
    local name, value = args[at]:match("^([^=]+)=(.*)$")
    wrk.headers[name] = value
  end
end
